# SPDX-License-Identifier: Apache-2.0
"""The kit, written from the documents, against the contract, byte for byte and both ways: random words, masks, case
folders, tensor files, traces and dumps. contract_bytes is the contract's side.

Usage: contract_test.py CONTRACT_BYTES TEXT CONFIG_DOCUMENT
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONTRACT, TEXT, DOCUMENT = (pathlib.Path(path).absolute() for path in sys.argv[1:4])
HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE / "testing")]
import numpy  # noqa: E402
import example_cases  # noqa: E402
import plumbline_engine as kit  # noqa: E402
from plumbline_engine.config import KNOWN_KEYS  # noqa: E402
from plumbline_engine.driver import run_case  # noqa: E402
from plumbline_engine.export import ARRAY_TYPES, KINDS, Exports  # noqa: E402


def contract(*words):
    return subprocess.run([CONTRACT, *map(str, words)], check=True, capture_output=True, text=True).stdout


class InFolder(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = pathlib.Path(keeper.name)

    def case_dir(self, spec, name="case"):
        (self.folder / "case.json").write_text(json.dumps(spec))
        contract("case", self.folder / "case.json", TEXT, self.folder / name)
        return self.folder / name


class RandomStream(InFolder):
    def test_words_and_masks_are_the_contracts(self):
        contract("words", self.folder / "words.safetensors")
        tensors, _ = kit.read_tensor_file(self.folder / "words.safetensors")
        self.assertEqual(len(tensors), 25)
        for name, tensor in tensors.items():
            what, seed, site, step, layer, first = name.split("/")
            place, count = (int(seed), int(site), int(step), int(layer)), tensor.values.size
            elements = numpy.arange(int(first), int(first) + count, dtype=numpy.uint64)
            if what == "words":
                found = kit.draw(*place, elements)
            else:  # a sample of one element has the words of samples
                found = kit.keep_mask(*place, elements, (1,), int(what[len("keep"):]) / 10)[:, 0]
            self.assertEqual(found.tolist(), tensor.values.tolist(), name)

    def test_a_mask_is_that_of_the_global_batch(self):
        whole = kit.keep_mask(3, "scores", 5, 1, numpy.arange(6), (2, 5, 5), 0.3)
        self.assertEqual(whole.shape, (6, 2, 5, 5))
        self.assertTrue((whole[[1, 4]] == kit.keep_mask(3, "scores", 5, 1, [1, 4], (2, 5, 5), 0.3)).all())
        self.assertEqual(whole.ravel().tolist(),
                         kit.keep_mask(3, 17, 5, 1, numpy.arange(300), (1, ), 0.3).ravel().tolist())

    def test_an_element_is_kept_from_the_threshold_on(self):
        word = int(kit.draw(3, 16, 0, 0, [5])[0])
        for above, kept in ((0, True), (0.5, True), (1, False)):  # floor(p * 2^32) is the word itself, twice
            self.assertEqual(kit.keep_mask(3, 16, 0, 0, [5], (1,), (word + above) / 2**32).tolist(), [[kept]])


class Bfloat16(unittest.TestCase):
    def test_rounds_to_nearest_with_ties_to_even_and_keeps_what_is_not_finite(self):
        numbers = [1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -0.0, 2.0**-133, numpy.inf, -numpy.inf, 3.4e38]
        expected = [0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x8000, 0x0001, 0x7F80, 0xFF80, 0x7F80]
        self.assertEqual(kit.to_bfloat16(numpy.float32(numbers)).tolist(), expected)
        nans = numpy.array([0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF],
                           "<u4").view("<f4")  # their bits must not carry into infinity
        self.assertTrue(numpy.isnan(kit.from_bfloat16(kit.to_bfloat16(nans))).all())

    def test_every_pattern_survives_the_way_there_and_back(self):
        bits = numpy.arange(1 << 16, dtype=numpy.uint16)
        back = kit.to_bfloat16(kit.from_bfloat16(bits))
        is_nan = numpy.isnan(kit.from_bfloat16(bits))
        self.assertTrue((back[~is_nan] == bits[~is_nan]).all())


class Cases(InFolder):
    def test_reads_what_the_contract_writes_of_every_family(self):
        for family, spec in example_cases.ALL.items():
            case = kit.read_case(self.case_dir(spec, family))
            written = json.loads((case.folder / "case.json").read_text())
            self.assertEqual((case.id, case.family, case.seed, case.steps),
                             (spec["id"], family, spec["seed"], spec["steps"]))
            self.assertEqual((case.config.raw, case.model), (written["config"], written["model"]))
            config = written["config"]
            self.assertEqual(
                (case.config.train_batch, case.config.micro_batch, case.config.accumulation, case.config.data_degree),
                (config["train_batch_size"], config["train_micro_batch_size_per_gpu"],
                 config["gradient_accumulation_steps"], config["mesh"]["data"]))
            tensors, _ = kit.read_tensor_file(case.folder / "weights.safetensors")
            self.assertEqual([(p.name, p.shape) for p in case.parameters],
                             [(n, t.values.shape) for n, t in tensors.items()])

    def test_a_rank_gets_the_samples_of_the_document(self):
        case = kit.read_case(self.case_dir(example_cases.EXACT))
        tensors, _ = kit.read_tensor_file(case.folder / "batches.safetensors")
        for rank in range(2):
            batch = case.batch(1, rank)
            self.assertEqual(batch.samples.tolist(), [[(a * 2 + rank) * 2 + i for i in range(2)] for a in range(3)])
            for part in range(3):
                for name, values in (("tokens", batch.tokens), ("labels", batch.labels), ("loss_weights",
                                                                                          batch.loss_weights)):
                    self.assertEqual(values[part].tolist(), tensors[name].values[1][batch.samples[part]].tolist())

    def test_the_contract_reads_every_tensor_file_that_the_kit_writes_as_its_own(self):
        for family, spec in example_cases.ALL.items():
            for path in self.case_dir(spec, family).glob("*.safetensors"):
                kit.write_tensor_file(self.folder / "kit", *kit.read_tensor_file(path))
                contract("copy", self.folder / "kit", self.folder / "copy")
                self.assertEqual((self.folder / "copy").read_bytes(), path.read_bytes(), path)

    def test_reads_the_state_of_a_run_that_has_begun(self):
        path = self.case_dir(example_cases.LLAMA)
        tensors, metadata = kit.read_tensor_file(path / "state.safetensors")
        metadata |= {"updates": "6", "norm_count": "5", "norm_mean": "0.1", "norm_variance": "1e-17",
                     "loss_scale": "4096", "loss_scale_steps": "9", "loss_scale_last_overflow": "-1",
                     "loss_scale_hysteresis": "2"}
        kit.write_tensor_file(path / "state.safetensors", tensors, metadata)
        case = kit.read_case(path)
        self.assertEqual((case.updates, case.norm_history, list(case.state)), (6, (5, 0.1, 1e-17), ["moment"]))
        self.assertEqual(case.loss_scaler, (4096, 9, -1, 2))
        for optimizer, kinds in (("AdamW", ["moment", "second_moment"]), ("Adam", ["moment", "second_moment"]),
                                 ("Lion", ["moment"]), ("Lamb", ["moment", "second_moment"]), ("SGD", [])):
            spec = {**example_cases.LLAMA, "config": {"train_batch_size": 4, "optimizer": {"type": optimizer}}}
            self.assertEqual(list(kit.read_case(self.case_dir(spec, optimizer)).state), kinds)

    def test_every_type_survives_the_contract(self):
        arrays = {
            "F64": numpy.float64([0.1, -0.0]), "F32": numpy.float32([[0.1], [numpy.inf]]), "F16": numpy.float16([0.1]),
            "BF16": numpy.uint16([0x3F80, 0xFFFF, 0]), "I64": numpy.int64([-2**63]),
            "I32": numpy.int32([]).reshape(0, 3), "U16": numpy.uint16([65535]), "U8": numpy.uint8(7)
        }
        kit.write_tensor_file(self.folder / "kit", {d: kit.Tensor(d, numpy.asarray(v)) for d, v in arrays.items()},
                              {"step": "3"})
        contract("copy", self.folder / "kit", self.folder / "copy")
        tensors, metadata = kit.read_tensor_file(self.folder / "copy")
        self.assertEqual((list(tensors), metadata), (list(arrays), {"step": "3"}))
        self.assertEqual(int.from_bytes((self.folder / "kit").read_bytes()[:8], "little") % 8, 0)
        for dtype, values in arrays.items():
            found = tensors[dtype]
            self.assertEqual((found.dtype, found.values.shape, found.values.tobytes()),
                             (dtype, values.shape, values.tobytes()))

    def test_knows_exactly_the_supported_keys_of_the_config_document(self):
        table = DOCUMENT.read_text().split("## Supported")[1].split("\n## ")[0]
        self.assertEqual(set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)), KNOWN_KEYS)

    def test_what_it_does_not_know_is_unsupported_and_named(self):
        path = self.case_dir(example_cases.EXACT)
        original = json.loads((path / "case.json").read_text())
        for change, name in (({"config": {**original["config"], "steps_per_print": 3}}, "config.steps_per_print"),
                             ({"config": {**original["config"], "mesh": {"data": 2,
                                                                         "tensor": 2}}}, "config.mesh.tensor"),
                             ({"protocol": 2}, "protocol 2"), ({"family": "moe"}, "family moe"), ({"wish": 1}, "wish")):
            (path / "case.json").write_text(json.dumps({**original, **change}))
            with self.assertRaisesRegex(kit.Unsupported, re.escape(name)):
                kit.read_case(path)
        (path / "case.json").write_text(json.dumps({**original, "config": {**original["config"], "steps_per_print": 3}
                                                    }))
        self.assertEqual(kit.read_case(path, {"steps_per_print"}).id, "exact/kit")

    def test_a_malformed_tensor_file_is_named_with_its_tensor(self):
        good = kit.Tensor("F32", numpy.zeros((2, 3), numpy.float32))
        kit.write_tensor_file(self.folder / "t", {"a": good, "b": good})
        text = (self.folder / "t").read_bytes()
        for old, new, words in ((b'"F32"', b'"F33"', "t: a: dtype is 'F33'"), (b"[2,3]", b"[2,4]",
                                                                               "t: a: data_offsets"),
                                (b"[24,48]", b"[23,47]", "t: b, or|no tensor, or two, have byte 23"),
                                (b'{"a"', b'["a"', "no safetensors file"), (b"[0,24]", b"[0,99]",
                                                                            "t: a: data_offsets")):
            self.assertIn(old, text)
            (self.folder / "t").write_bytes(text.replace(old, new, 1))
            with self.assertRaisesRegex(ValueError, words):
                kit.read_tensor_file(self.folder / "t")
        for wrong in (text[:0], text[:7], text[:20], text[:-1], text + b"x"):
            (self.folder / "t").write_bytes(wrong)
            with self.assertRaises(ValueError):
                kit.read_tensor_file(self.folder / "t")


class Pretender(kit.Engine):
    """Trains nothing; what it holds after a step is drawn from the step, and equal on all ranks."""

    def build(self):
        pass

    def step(self, batch):
        self.rng = numpy.random.default_rng(batch.step)
        real = {} if self.case.is_exact else {
            "lr": [0.1] *
            (1 + len(self.case.config.groups)), "gradient_norm": numpy.nan, "skipped": False,
            "norm_history": (3, 0.1, 1e-17), "loss_scaler": (2048, 9, 7, 1)
        }
        return kit.StepResult(loss=numpy.float32(12), tokens=self.case.tokens_of(batch.step), **real)

    def export(self):
        exports = Exports(self.case)
        return {kind: {name: self.values(exports.dtypes[kind], p.shape) for name, p in tensors.items()}
                for kind, tensors in exports.expected.items()}

    def values(self, dtype, shape):
        if dtype == "I64":
            return self.rng.integers(-2**24, 2**24, shape).astype(numpy.float32)  # as an engine in fp32 would hold them
        return self.rng.integers(0, 256, (*shape, numpy.dtype(ARRAY_TYPES[dtype]).itemsize), numpy.uint8).view(
            ARRAY_TYPES[dtype])[..., 0]  # any bits: NaNs, infinities, subnormal numbers


class Sharder(Pretender):
    """The same in ZeRO 1: each rank has its half of what the stage shards, in two slices and in another order."""

    def export(self):
        whole = super().export()
        for kind in set(whole) - {"weight"}:
            frozen = self.case.model.get("frozen", [])
            whole[kind] = {
                name: value if name in frozen else self.half(value.ravel()) for name, value in whole[kind].items()
            }
        return dict(reversed(whole.items()))

    def half(self, flat):
        middle = flat.size // 2
        begin, end = (0, middle) if self.ranks.rank == 0 else (middle, flat.size)
        cut = (begin + end) // 2
        return [kit.Slice(cut, flat[cut:end]), kit.Slice(begin, flat[begin:cut])]


def description_of(spec):
    return kit.describe(
        "pretender",
        "1",
        families=[spec["family"]],
        dtypes=["fp32", "bf16", "fp16"],
        optimizers=[spec["config"]["optimizer"]["type"]],
        zero_stages=[0, 1, 2, 3],
        max_data_degree=16,
        features=["accumulation", "dropout", "dump", "grouped_heads", "loss_scaler", "norm_history",
                  "unequal_lengths"])


class Traces(InFolder):
    def run_all(self, engine, spec, case_dir):
        world, out_dir = spec["config"].get("mesh", {"data": 1})["data"], self.folder / "out"
        out_dir.mkdir()
        for rank in range(world):
            run_case(engine, description_of(spec), case_dir, out_dir, kit.Ranks(rank, rank, world))
        return out_dir, world

    def check(self, engine, spec):
        case_dir = self.case_dir(spec)
        out_dir, world = self.run_all(engine, spec, case_dir)
        said = contract("trace", case_dir, out_dir)
        self.assertRegex(said, r"^ok \d\d+$")
        for rank in range(world):
            self.check_dumps(out_dir / ("rank%d" % rank), spec)

    def check_dumps(self, folder, spec):
        records = map(json.loads, (folder / "trace.jsonl").read_text().splitlines())
        dumped = [record for record in records if record.get("step") in spec["dump_steps"]]
        self.assertEqual(len(dumped), len(spec["dump_steps"]))
        for record in dumped:
            lines = contract("digests", folder / ("tensors-%06d.safetensors" % record["step"]),
                             "exact" if spec["family"] == "exact" else "real").splitlines()
            found = {line.split()[0]: line.split()[1:] for line in lines}
            traced = {"%s/%s@%d" % (kind, name, begin): digest
                      for kind in KINDS for name, begin, _, *digest in record.get(kind, [])}
            self.assertEqual(set(found), set(traced))
            for name, digest in traced.items():
                self.assertEqual([str(part) for part in digest], found[name][:len(digest)], name)

    def test_the_harness_reads_every_family(self):
        for spec in example_cases.ALL.values():
            with self.subTest(spec["family"]):
                self.setUp()
                self.check(Pretender, {**spec, "dump_steps": spec.get("dump_steps", [1])})

    def test_the_harness_puts_slices_together(self):
        for spec in (example_cases.EXACT, example_cases.GPT2):
            with self.subTest(spec["family"]):
                self.setUp()
                spec = copy.deepcopy({**spec, "dump_steps": spec.get("dump_steps", [1])})
                spec["config"]["zero_optimization"]["stage"] = 1
                self.check(Sharder, spec)

    def test_a_layer_of_stage_0_is_whole_where_others_are_sharded(self):
        for layer_stages, is_whole in (([0], True), ([1], False)):
            self.setUp()
            spec = copy.deepcopy({**example_cases.GPT2, "dump_steps": []})
            spec["config"]["zero_optimization"] = {"stage": 1, "layer_stages": layer_stages}
            self.assertEqual(spec["model"]["layers"], len(layer_stages))
            exports = Exports(kit.read_case(self.case_dir(spec)))
            layer = next(p for p in exports.case.parameters if p.name.startswith("layers.0.") and not p.frozen)
            self.assertEqual(exports.is_whole("moment", layer), is_whole)
            self.assertFalse(exports.is_whole("moment", exports.case.parameters[0]))

    def test_phases_are_written_where_the_case_wants_them(self):
        class Marked(Pretender):
            def step(self, batch):
                self.phase("forward")
                return super().step(batch)
        for wanted, count in ((True, 3), (False, 0)):
            self.setUp()
            spec = {**example_cases.EXACT, "phase_marks": wanted}
            out_dir, _ = self.run_all(Marked, spec, self.case_dir(spec))
            self.assertEqual((out_dir / "rank1" / "trace.jsonl").read_text().count('"phase"'), 2 * count)

    def test_a_step_is_in_the_file_before_the_next_one_begins(self):
        seen, out_dir = [], self.folder / "out"

        class Watched(Pretender):
            def step(self, batch):
                seen.append((out_dir / "rank0" / "trace.jsonl").read_text().count('"record": "step"'))
                return super().step(batch)
        spec = {**example_cases.LLAMA, "steps": 4}
        self.run_all(Watched, spec, self.case_dir(spec))
        self.assertEqual(seen, [0, 1, 2, 3])

    def expect(self, words, change, spec=example_cases.EXACT):
        """An export that `change` was made to is an error with these words, and its step is not in the trace."""
        class Changed(Pretender):
            def export(self):
                exported = super().export()
                change(exported)
                return exported
        self.setUp()
        with self.assertRaisesRegex((ValueError, TypeError), words):
            self.run_all(Changed, spec, self.case_dir(spec))
        self.assertNotIn('"step"', (self.folder / "out" / "rank0" / "trace.jsonl").read_text())

    def test_what_is_forgotten_or_of_another_shape_or_type_is_named(self):
        name = "layers.1.mlp.up"
        self.expect("gradient of layers.1.mlp.up: missing; all 84", lambda e: e["gradient"].pop(name))
        self.expect("moment of embed.weight: missing", lambda e: e.pop("moment"))
        self.expect(r"master of layers.1.mlp.up has shape \[7, 12\]; the protocol's is \[12, 7\]",
                    lambda e: e["master"].update({name: e["master"][name].T}))
        self.expect("weight of layers.9.mlp.up: the case has no such tensor",
                    lambda e: e["weight"].update({"layers.9.mlp.up": 0}))
        self.expect("'momentum'; of this case: gradient, moment, master, weight", lambda e: e.update({"momentum": {}}))
        self.expect(r"slice \[80, 90\) of 84", lambda e: e["weight"].update({name: kit.Slice(80, numpy.zeros(10))}))
        self.expect("elements from 20 on are missing or there twice", lambda e: e["weight"].update(
            {name: [kit.Slice(0, numpy.zeros(20)), kit.Slice(10, numpy.zeros(74))]}))
        self.expect("weight of layers.1.mlp.up: element 5 is 0.5",
                    lambda e: e["weight"][name].ravel().__setitem__(5, 0.5))
        self.expect("element 0 is nan", lambda e: e["gradient"][name].ravel().__setitem__(0, numpy.nan))
        real = example_cases.GPT2
        self.expect("weight of embed.weight holds float32; uint16 is needed, the bits of bf16",
                    lambda e: e["weight"].update({"embed.weight": e["master"]["embed.weight"]}), real)
        self.expect("moment of embed.weight holds float64; float32", lambda e: e["moment"].update(
            {"embed.weight": numpy.zeros((11, 8))}), real)
        self.expect("gradient of pos.weight: the case has no such tensor", lambda e: e["gradient"].update(
            {"pos.weight": e["master"]["pos.weight"]}), real)
        sharded = copy.deepcopy(example_cases.EXACT)
        sharded["config"]["zero_optimization"]["stage"] = 2
        self.expect("weight of pos.weight: missing", lambda e: e["weight"].pop("pos.weight"),
                    sharded)  # whole up to stage 2

    def test_a_step_of_a_real_family_must_say_rate_norm_and_skip(self):
        class Silent(Pretender):
            def step(self, batch):
                return super().step(batch)._replace(lr=None)

        class OneRate(Pretender):
            def step(self, batch):
                return super().step(batch)._replace(lr=[0.1])

        for engine, words in ((Silent, "StepResult has no lr"),
                              (OneRate, "lr has 1 rates; there are the default group and 2 more")):
            self.setUp()
            with self.assertRaisesRegex(ValueError, words):
                self.run_all(engine, example_cases.GPT2, self.case_dir(example_cases.GPT2))




if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
