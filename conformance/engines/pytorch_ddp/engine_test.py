# SPDX-License-Identifier: Apache-2.0
"""The adapter for PyTorch DDP from outside: its gradients against finite differences of the documented loss and against the
reference as a black box, its updates against the documented formulas, its ranks against each other, what it declines; and
three wrong copies of it, each made here by the exact replacement of one text, which the same comparisons must tell from it.

Usage: engine_test.py STARTER ENGINE WRITE_CASE REFERENCE TEXT. Without PyTorch it says NOT_RUN and runs what needs none.
"""
import json
import math
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

STARTER, ENGINE, WRITE_CASE, REFERENCE, TEXT = (pathlib.Path(path).resolve() for path in sys.argv[1:6])
sys.path.insert(0, str(ENGINE.parent / "testing"))
import case_folder  # noqa: E402
import loss_formula  # noqa: E402
import with_pytorch  # noqa: E402
import wrong_copies  # noqa: E402

# 32 units in the last place of fp32: about as many roundings follow each other in these models. A defect is above 1e-2.
GRADIENT_BOUND = 2.0**-19

SMALL = {"layers": 1, "width": 4, "heads": 2, "positions": 3, "hidden": 5, "vocab": 7}
ODD = {"layers": 2, "width": 6, "heads": 3, "positions": 5, "hidden": 7, "vocab": 11}
SGD = {"type": "SGD", "params": {"lr": 0.5}}
MOMENTUM = {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}}
NESTEROV = {"type": "SGD", "params": {**MOMENTUM["params"], "nesterov": True}}
ADAMW = {"type": "AdamW", "params": {"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}}
GROUPS = [{"match": "*.bias", "weight_decay": 0}, {"match": "layers.*", "lr": 0.04}, {"match": "*.weight", "weight_decay": 0.2}]
BETAS = [0.5, 0.75]  # of the first group, where the optimizer has betas
WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": 0.01, "warmup_num_steps": 5, "warmup_type": "log"}}


def case(model, optimizer, steps=1, first_step=0, batch=12, model_extra=None, **config):
    return {"protocol": 1, "family": "gpt2", "id": "gpt2/test", "seed": 2**40 + 7, "steps": steps, "first_step": first_step,
            "timeout_s": 60, "dump_steps": list(range(first_step, first_step + steps)), "model": {**model, **(model_extra or {})},
            "config": {"train_batch_size": batch, "optimizer": optimizer, **config}}


def layout(spec, world, parts=1):
    return {**spec, "config": {**spec["config"], "mesh": {"data": world}, "gradient_accumulation_steps": parts}}


# What single steps are compared with the reference on. Sizes: heads of width 2, odd and prime hidden and vocabulary, 5 positions.
CASES = {
    "plain": case(ODD, SGD),
    "untied, an unused parameter, epsilon": case(ODD, MOMENTUM, model_extra={"tied_head": False, "unused": True, "norm_epsilon": 0.01}),
    "frozen, tied and frozen": case(ODD, MOMENTUM, model_extra={"frozen": ["embed.weight", "layers.0.norm1.bias"]}),
    "groups, warm-up, clipping": case(ODD, MOMENTUM, first_step=3, param_groups=GROUPS, scheduler=WARMUP, gradient_clipping=0.1),
    "Nesterov": case(ODD, NESTEROV, param_groups=GROUPS, gradient_clipping=0.1),
    "clipping not reached": case(ODD, SGD, gradient_clipping=1000),
    "AdamW, one position": case({**ODD, "positions": 1}, ADAMW, model_extra={"unused": True}),
    "dropout": case(ODD, MOMENTUM, first_step=2, model_extra={"dropout": 0.3}),
    "buckets of one element": case(ODD, ADAMW, zero_optimization={"reduce_bucket_size": 1}),
    "three steps": case(ODD, SGD, steps=3, model_extra={"unused": True}),
}
LAYOUTS = [(1, 1), (1, 4), (2, 3), (3, 1), (3, 2)]  # (ranks, micro-batches of a rank); all divide the batch of 12


class Folder:
    """A new folder, in which cases are written and run, of a class of tests or of one."""

    def __init__(self, add_cleanup):
        keeper = tempfile.TemporaryDirectory()
        add_cleanup(keeper.cleanup)
        self.path, self.count = pathlib.Path(keeper.name), 0

    def new(self, name):
        self.count += 1
        return self.path / ("%03d-%s" % (self.count, name))

    def write(self, spec):
        file, folder = self.new("case.json"), self.new("case")
        file.write_text(json.dumps(spec))
        subprocess.run([WRITE_CASE, file, TEXT, folder], check=True)
        return folder

    def write_unparsed(self, spec, **config):
        """The folder of a case, with keys in its config that the harness would not write there."""
        folder = self.write(spec)
        written = json.loads((folder / "case.json").read_text())
        written["config"] |= config
        (folder / "case.json").write_text(json.dumps(written))
        return folder

    def start(self, world, *arguments, starter=STARTER):
        """Starts a program as the harness starts per-rank engines. Returns exit codes and what the ranks printed."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        logs = [self.new("log") for _ in range(world)]
        processes = []
        for rank, log in enumerate(logs):
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            with open(log, "w") as stream:
                processes.append(subprocess.Popen([starter, *arguments], stdout=stream, stderr=stream, stdin=subprocess.DEVNULL,
                                                  env={**os.environ, **{key: str(value) for key, value in place.items()}}))
        try:
            return [process.wait(120) for process in processes], [log.read_text() for log in logs]
        finally:
            for process in processes:
                process.kill()

    def run(self, world, cases, starter=STARTER):
        """Runs case folders in one start; returns [(out folder, status)], the exit codes, and the logs."""
        outs = [self.new("out") for _ in cases]
        for out in outs:
            out.mkdir()
        batch = self.new("list")
        batch.write_text("".join(json.dumps({"case": str(one), "out": str(out)}) + "\n" for one, out in zip(cases, outs)))
        codes, logs = self.start(world, "run", "--batch", str(batch), starter=starter)
        statuses = [json.loads((out / "status.json").read_text()) if (out / "status.json").exists() else None for out in outs]
        return list(zip(outs, statuses)), codes, logs

    def reference(self, spec):
        out = self.new("truth")
        out.mkdir()
        subprocess.run([REFERENCE, "run", "--case", self.write(layout(spec, 1)), "--out", out], check=True)
        return out

    def changed_copy(self, old, new):
        return wrong_copies.changed_copy(STARTER, ENGINE, self.new("copy"), old, new)


def difference(values, truth):
    """The norm of the difference over the norm of the truth; where the truth is zero, the norm of the values."""
    distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(values, truth, strict=True)))
    size = math.sqrt(sum(b * b for b in truth))
    return distance / size if size else distance


def worst(out, truth, spec, kind):
    """(largest difference, name) over the tensors of a kind, in the first step: later ones start from different weights."""
    ours, theirs = (case_folder.read_dump(folder, 0, spec["first_step"]) for folder in (out, truth))
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())
    found = [(difference(ours[name], theirs[name]), name) for name in ours if name.startswith(kind + "/")]
    assert found, "nothing of kind %s" % kind
    return max(found, key=lambda pair: (math.isnan(pair[0]), pair[0]))


class WithoutPyTorch(unittest.TestCase):
    def test_the_adapter_has_fewer_than_200_lines(self):
        self.assertLess(len(ENGINE.read_text().splitlines()), 200)

    def test_a_missing_pytorch_is_one_line_and_exit_code_4(self):
        for arguments in (["describe"], ["run", "--batch", "none"]):
            done = subprocess.run([STARTER, "--torch", "/nowhere", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (4, "", 1), done.stderr)
            self.assertIn("no PyTorch in /nowhere", done.stderr)

    def test_the_cache_folder_is_that_of_the_launcher(self):
        home = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache")
        for named, cache in (("/nowhere/cache", pathlib.Path("/nowhere/cache")), ("", home), ("nowhere/cache", home), (None, home)):
            environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere/home"} | ({} if named is None else {"XDG_CACHE_HOME": named})
            done = subprocess.run([sys.executable, "-IB", ENGINE.with_name("cache_folder.py")],
                                  env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.strip(), str(cache / "plumbline"), named)

    def test_starter_and_installer_look_into_the_cache_folder(self):
        environment = {**os.environ, "XDG_CACHE_HOME": "/nowhere/cache"}
        for program, arguments, missing in ((STARTER, ["describe"], "no PyTorch in /nowhere/cache/plumbline/pytorch;"),
                                            (STARTER.with_name("install.py"), [], "no LibTorch in /nowhere/cache/plumbline/libtorch-")):
            done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (4, "", 1), done.stderr)
            self.assertIn(missing, done.stderr)

    def test_a_pytorch_that_cannot_be_loaded_is_one_line_and_exit_code_4(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "torch")
            package.mkdir()
            (package / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cannot open\\nsecond line')\n")
            done = subprocess.run([STARTER, "--torch", folder, "describe"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertEqual(done.stderr, "pytorch_ddp: PyTorch cannot be loaded: libtorch_cpu.so: cannot open\n")


class Values(unittest.TestCase):
    """All cases in all layouts: one start for each number of ranks."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder(cls.addClassCleanup)
        cls.truths = {name: cls.folder.reference(spec) for name, spec in CASES.items()}
        cls.outs = {}
        for world in sorted({world for world, _ in LAYOUTS}):
            keys = [(name, world, parts) for name in CASES for ranks, parts in LAYOUTS if ranks == world]
            cases = [cls.folder.write(layout(CASES[name], world, parts)) for name, _, parts in keys]
            results, codes, logs = cls.folder.run(world, cases)
            assert codes == [0] * world and all(status == {"status": "ok", "message": ""} for _, status in results), (results, logs)
            cls.outs.update({key: out for key, (out, _) in zip(keys, results)})

    def for_each_run(self, check):
        for (name, world, parts), out in self.outs.items():
            with self.subTest(case=name, ranks=world, micro_batches=parts):
                check(CASES[name], out, self.truths[name], world)

    def test_gradients_equal_the_references(self):
        def check(spec, out, truth, _):
            error, where = worst(out, truth, spec, "gradient")
            self.assertLessEqual(error, GRADIENT_BOUND, where)
        self.for_each_run(check)

    def test_weights_and_buffers_of_sgd_equal_the_references(self):
        # AdamW's step divides noise by noise where a gradient is zero in theory (the keys' biases), so it has a test of its own.
        def check(spec, out, truth, _):
            if spec["config"]["optimizer"]["type"] == "SGD":
                for kind in ("master", "weight") + (("moment",) if spec["config"]["optimizer"] in (MOMENTUM, NESTEROV) else ()):
                    error, where = worst(out, truth, spec, kind)
                    self.assertLessEqual(error, GRADIENT_BOUND, where)
        self.for_each_run(check)

    def test_steps_report_what_the_reference_reports(self):
        def check(_, out, truth, world):
            for rank in range(world):
                ours, theirs = case_folder.read_trace(out, rank), case_folder.read_trace(truth, 0)
                self.assertEqual([line["record"] for line in ours], [line["record"] for line in theirs])
                for mine, true in zip(ours[1:-1], theirs[1:-1]):
                    for key in ("step", "tokens", "skipped"):
                        self.assertEqual(mine[key], true[key])
                    for key in ("loss", "gradient_norm"):
                        self.assertLessEqual(abs(mine[key] - true[key]), GRADIENT_BOUND * true[key], key)
                    self.assertLessEqual(difference(mine["lr"], true["lr"]), 2.0**-50)
        self.for_each_run(check)

    def test_all_ranks_hold_the_same_bits(self):
        def check(_, out, __, world):
            traces = [case_folder.read_trace(out, rank)[1:] for rank in range(world)]
            self.assertTrue(all(trace == traces[0] for trace in traces))
        self.for_each_run(check)

    def test_digests_are_those_of_the_dumped_bits(self):
        def check(_, out, __, world):
            for record in case_folder.read_trace(out, world - 1)[1:-1]:
                dump = case_folder.read_dump(out, world - 1, record["step"])
                kinds = {name.split("/")[0] for name in dump}
                traced = {"%s/%s" % (kind, name): (begin, end, hash) for kind in kinds for name, begin, end, hash in record[kind]}
                self.assertEqual(traced, {name: (0, len(values), case_folder.digest(values)) for name, values in dump.items()})
        self.for_each_run(check)

    def test_a_frozen_parameter_keeps_its_bits_and_has_no_gradient(self):
        spec = CASES["frozen, tied and frozen"]
        initial, _ = case_folder.read_tensors(self.folder.write(layout(spec, 1)) / "weights.safetensors")
        dump = case_folder.read_dump(self.outs["frozen, tied and frozen", 2, 3], 0, 0)
        for name in spec["model"]["frozen"]:
            self.assertEqual(dump["master/" + name], initial[name][2])
            self.assertNotIn("gradient/" + name, dump)
            self.assertNotIn("moment/" + name, dump)


class Formulas(unittest.TestCase):
    """Against the formulas of docs/semantics.md, on one rank; all cases in one start."""

    FINITE = {"tied": {}, "untied": {"tied_head": False, "layers": 2, "norm_epsilon": 0.01}}

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder(cls.addClassCleanup)
        cls.planned = {("finite", name): (case(SMALL, SGD, batch=3, model_extra=extra), cls.enlarge) for name, extra in cls.FINITE.items()}
        groups = [{**GROUPS[0], "betas": BETAS}, *GROUPS[1:]]
        adamw = case(ODD, ADAMW, steps=2, first_step=6, param_groups=groups, scheduler=WARMUP, gradient_clipping=0.05)
        cls.planned["adamw"] = (adamw, cls.inject(4))
        for name, optimizer in (("sgd", MOMENTUM), ("nesterov", NESTEROV)):
            sgd = case(ODD, optimizer, steps=3, first_step=2, param_groups=GROUPS, gradient_clipping=0.05)
            cls.planned |= {(name, updates): (sgd, cls.inject(updates)) for updates in (0, 1)}
        for name, optimizer in (("AdamW", ADAMW), ("momentum", MOMENTUM), ("SGD", SGD)):
            spec = case(ODD, optimizer, steps=4, scheduler=WARMUP, gradient_clipping=0.05)
            cls.planned["skip", name] = (spec, cls.poison)
        cases = [cls.folder.write(layout(spec, 1)) for spec, _ in cls.planned.values()]
        for one, (_, change) in zip(cases, cls.planned.values()):
            if change:
                change(one)
        results, codes, logs = cls.folder.run(1, cases)
        assert codes == [0] and all(status == {"status": "ok", "message": ""} for _, status in results), (results, logs)
        cls.runs = {key: (one, out) for key, one, (out, _) in zip(cls.planned, cases, results)}

    @staticmethod
    def inject(updates):
        """Moments that no run has made: any value, second moments positive."""
        def change(folder):
            tensors, metadata = case_folder.read_tensors(folder / "state.safetensors")
            for name, (_, _, values) in tensors.items():
                first = name.startswith("moment/")
                for i in range(len(values)):
                    values[i] = ((i * 37 + len(name)) % 19 - 9) * 1e-3 if first else ((i * 13) % 7 + 1) * 1e-5
            case_folder.write_tensors(folder / "state.safetensors", tensors, {**metadata, "updates": str(updates)})
        return change

    @staticmethod
    def enlarge(folder):
        """Matrices 30 times as large: at initial weights all of GELU is its slope at 0, and all attention uniform."""
        tensors, _ = case_folder.read_tensors(folder / "weights.safetensors")
        for name, (_, shape, values) in tensors.items():
            if len(shape) == 2:
                for i, value in enumerate(values):
                    values[i] = 30 * value
        case_folder.write_tensors(folder / "weights.safetensors", tensors)

    @staticmethod
    def poison(folder):
        tensors, _ = case_folder.read_tensors(folder / "weights.safetensors")
        tensors["layers.1.mlp.up.weight"][2][3] = math.nan
        case_folder.write_tensors(folder / "weights.safetensors", tensors)

    def states(self, key):
        """The state where the run starts, named like a dump, and then (record, dump) of each step."""
        folder, out = self.runs[key]
        weights, state = (case_folder.read_tensors(folder / name)[0] for name in ("weights.safetensors", "state.safetensors"))
        start = {"master/" + name: values for name, (_, _, values) in weights.items()}
        start |= {name: values for name, (_, _, values) in state.items()}
        records = case_folder.read_trace(out, 0)[1:-1]
        return start, [(record, case_folder.read_dump(out, 0, record["step"])) for record in records]

    def test_gradients_are_finite_differences_of_the_documented_loss(self):
        for name, extra in self.FINITE.items():
            spec, _ = self.planned["finite", name]
            model = {"tied_head": True, "norm_epsilon": 1e-5, **spec["model"]}
            start, [(record, dump)] = self.states(("finite", name))
            batches, _ = case_folder.read_tensors(self.runs["finite", name][0] / "batches.safetensors")
            size = model["positions"]
            tensors = [batches[kind][2] for kind in ("tokens", "labels", "loss_weights")]
            batch = [[tensor[i * size:(i + 1) * size] for tensor in tensors] for i in range(3)]
            weights = {key.removeprefix("master/"): list(values) for key, values in start.items() if key.startswith("master/")}
            loss = loss_formula.loss(model, weights, batch)
            self.assertLessEqual(abs(record["loss"] - loss), GRADIENT_BOUND * loss)
            for tensor in weights:
                with self.subTest(tensor=tensor, **extra):
                    truth = loss_formula.gradient(model, weights, batch, tensor)
                    self.assertGreater(max(map(abs, truth)), 1e-6)
                    self.assertLessEqual(difference(dump["gradient/" + tensor], truth), GRADIENT_BOUND)

    @staticmethod
    def group_of(name):
        """The place of its group in `lr`, its weight decay, and its betas: GROUPS and the optimizers, read by a person."""
        if name.endswith(".bias"):
            return 1, 0.0, (0.5, 0.75)
        return (2, 0.1, (0.8, 0.95)) if name.startswith("layers.") else (3, 0.2, (0.8, 0.95))

    def check_steps(self, key, formula):
        """`formula(before, gradient, m, v, lr, decay, betas, step index)` gives the new weight; each step starts from the dump before."""
        before, steps = self.states(key)
        for index, (record, dump) in enumerate(steps):
            scale = 0.05 / (record["gradient_norm"] + 1e-6)
            self.assertLess(scale, 0.9)  # clipping is reached
            for name in (name.removeprefix("master/") for name in dump if name.startswith("master/")):
                place, decay, betas = self.group_of(name)
                gradient, m = dump["gradient/" + name], before["moment/" + name]
                v = before.get("second_moment/" + name, m)
                for i, (p, after) in enumerate(zip(before["master/" + name], dump["master/" + name], strict=True)):
                    expected = formula(p, gradient[i] * scale, m[i], v[i], record["lr"][place], decay, betas, index)
                    # A few roundings of numbers of the sizes of the weight and of the update.
                    self.assertLessEqual(abs(after - expected), 8 * 2.0**-24 * (abs(p) + abs(expected - p)), (name, i, index))
            before = dump

    def test_adamw_updates_by_the_documented_formula_from_injected_state(self):
        _, [(record, _), _] = self.states("adamw")
        # Five steps after the first: the end of the warm-up, whose highest lr is the optimizer's, 0.02. Group 2 asks for 0.04.
        self.assertLessEqual(difference(record["lr"], [0.02, 0.02, 0.04, 0.02]), 2.0**-50)
        eps = ADAMW["params"]["eps"]

        def formula(p, g, m, v, lr, decay, betas, index):
            (beta1, beta2), t = betas, 4 + index + 1
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            return p * (1 - lr * decay) - lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
        self.check_steps("adamw", formula)

    def test_sgd_updates_by_the_documented_formula_and_its_first_update_ignores_the_buffer(self):
        for name, updates in (("sgd", 0), ("sgd", 1), ("nesterov", 0), ("nesterov", 1)):
            _, [(record, _), *_] = self.states((name, updates))
            self.assertEqual(record["lr"], [0.1, 0.1, 0.04, 0.1])

            def formula(p, g, b, _, lr, decay, __, index):
                g += decay * p
                b = g if updates + index == 0 else 0.9 * b + g
                return p - lr * (g + 0.9 * b if name == "nesterov" else b)
            self.check_steps((name, updates), formula)

    def test_a_gradient_that_is_not_finite_skips_the_step_but_not_the_schedule(self):
        for name in ("AdamW", "momentum", "SGD"):
            start, steps = self.states(("skip", name))
            for record, _ in steps:
                self.assertEqual([record[key] for key in ("skipped", "loss", "gradient_norm")], [True, None, None])
            self.assertGreater(steps[3][0]["lr"][0], steps[0][0]["lr"][0])
            for key, values in start.items():
                self.assertEqual(steps[3][1][key].tobytes(), values.tobytes())


class WrongCopies(unittest.TestCase):
    """What the comparison with the reference says about an adapter in which one thing is wrong, on unequal counts of tokens."""

    def test_each_is_told_from_the_adapter_by_the_comparison_with_the_reference(self):
        folder, spec = Folder(self.addCleanup), CASES["plain"]
        truth, same_case = folder.reference(spec), folder.write(layout(spec, 2, 3))
        for title, (old, new, _) in wrong_copies.WRONG.items():
            with self.subTest(title):
                [(out, status)], codes, logs = folder.run(2, [same_case], starter=folder.changed_copy(old, new))
                self.assertEqual((status, codes), ({"status": "ok", "message": ""}, [0, 0]), logs)
                error, where = worst(out, truth, spec, "gradient")
                self.assertGreater(error, 1e-2, where)
                same = case_folder.read_trace(out, 0)[1]["gradient"] == case_folder.read_trace(out, 1)[1]["gradient"]
                self.assertEqual(same, not title.startswith("no reduction"))


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder(cls.addClassCleanup)

    def test_a_batch_goes_on_after_what_is_unsupported_and_after_an_error(self):
        good = layout(case(SMALL, SGD, batch=4), 2)
        asked = [
            ({"config": {**good["config"], "bf16": {"enabled": True}}}, "bf16"),
            ({"config": {**good["config"], "zero_optimization": {"stage": 2}}}, "ZeRO over ranks"),
            ({"config": {**good["config"], "fp64": {"enabled": True}}}, "config.fp64"),
            ({"config": {**good["config"], "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9}}}},
             "schedule"),
            ({"config": {**good["config"], "param_groups": [{"match": "no*"}, {"match": "*.bias", "clip": False}]}},
             "param_groups.clip"),
            ({"save_steps": [0]}, "save_steps"),
            ({"phase_marks": True}, "phase_marks"),
        ]
        for kind, params in (("Adam", {"adam_w_mode": False}), ("Lion", {}), ("Lamb", {})):
            asked.append(({"config": {**good["config"], "optimizer": {"type": kind, "params": params}}}, "optimizer " + kind))
        for kind in ("unit", "history"):
            asked.append(({"config": {**good["config"], "adaptive_clipping": {"type": kind}}}, "config.adaptive_clipping"))
        broken = self.folder.write(good)
        (broken / "weights.safetensors").unlink()
        cases = [self.folder.write({**good, **change}) for change, _ in asked] + [broken, self.folder.write(good)]
        # The contract's parser has no fp16 for this family yet, so no case of it can be written.
        asked.insert(0, ({}, "fp16"))
        cases.insert(0, self.folder.write_unparsed(good, fp16={"enabled": True, "loss_scale": 64}))
        results, codes, _ = self.folder.run(2, cases)
        self.assertEqual(codes, [0, 0])
        *declined, error, last = [status for _, status in results]
        self.assertEqual(declined, [{"status": "unsupported", "message": "Unsupported: " + word} for _, word in asked])
        self.assertEqual((error["status"], last["status"]), ("error", "ok"))
        self.assertIn("weights.safetensors", error["message"])

    def test_storage_types_that_are_named_and_not_enabled_are_no_obstacle(self):
        folder = self.folder.write_unparsed(layout(case(SMALL, SGD, batch=4), 1), fp16={"enabled": False, "loss_scale": 0})
        [(_, status)], codes, logs = self.folder.run(1, [folder])
        self.assertEqual((status, codes), ({"status": "ok", "message": ""}, [0]), logs)

    def test_single_cases_end_with_the_exit_code_of_their_status_on_every_rank(self):
        stage3 = case(SMALL, SGD, batch=4, zero_optimization={"stage": 3})  # with one rank the same as stage 0
        for world, code, status in ((1, 0, "ok"), (2, 3, "unsupported")):
            out = self.folder.new("out")
            out.mkdir()
            codes, logs = self.folder.start(world, "run", "--case", str(self.folder.write(layout(stage3, world))), "--out", str(out))
            self.assertEqual((codes, json.loads((out / "status.json").read_text())["status"]), ([code] * world, status), logs)

    def test_a_rank_that_fails_alone_frees_the_others_at_once(self):
        good = self.folder.write(layout(case(SMALL, SGD, batch=4, steps=3), 2))
        copy = self.folder.changed_copy("            write(**record)\n", "            write(**record)\n            assert rank == 0, 'planted'\n")
        began = time.monotonic()
        [(_, status)], codes, logs = self.folder.run(2, [good], starter=copy)
        self.assertEqual((codes, status["status"]), ([0, 0], "error"), logs)
        self.assertLess(time.monotonic() - began, 40)  # a collective's time-out is 60 s
        self.assertIn("planted", logs[1])


if __name__ == "__main__":
    with_pytorch.main(STARTER, sys.argv[6:])
