# SPDX-License-Identifier: Apache-2.0
"""What the adapters share, judged without the harness: gradients of torch_python against finite differences of the
documented loss in plain Python, its updates against the documented formulas, from states that no run has made.

Usage: formulas_test.py TORCH_PYTHON WRITE_CASE TEXT. Without PyTorch it says NOT_RUN and runs what needs none.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, WRITE_CASE, TEXT = (pathlib.Path(path).absolute() for path in sys.argv[1:4])
sys.path.insert(0, str(PROGRAM.parent / "testing"))
import case_folder  # noqa: E402
import loss_formula  # noqa: E402
import with_torch  # noqa: E402

# 32 units in the last place of fp32: about as many roundings follow each other in these models. A defect is above 1e-2.
GRADIENT_BOUND = 2.0**-19

SMALL = {"layers": 1, "width": 4, "heads": 2, "positions": 3, "hidden": 5, "vocab": 7}
ODD = {"layers": 2, "width": 6, "heads": 3, "positions": 5, "hidden": 7, "vocab": 11}
SGD = {"type": "SGD", "params": {"lr": 0.5}}
MOMENTUM = {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}}
NESTEROV = {"type": "SGD", "params": {**MOMENTUM["params"], "nesterov": True}}
ADAMW = {"type": "AdamW", "params": {"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}}
COUPLED = {"type": "Adam", "params": {**ADAMW["params"], "adam_w_mode": False}}
GROUPS = [{"match": "*.bias", "weight_decay": 0}, {"match": "layers.*", "lr": 0.04},
          {"match": "*.weight", "weight_decay": 0.2}]
BETAS = [0.5, 0.75]  # of the first group, where the optimizer has betas
WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": 0.01, "warmup_num_steps": 5, "warmup_type": "log"}}


def case(model, optimizer, steps=1, first_step=0, batch=12, model_extra=None, **config):
    return {"protocol": 1, "family": "gpt2", "id": "gpt2/test", "seed": 2**40 + 7, "timeout_s": 60,
            "steps": steps, "first_step": first_step, "dump_steps": list(range(first_step, first_step + steps)),
            "model": {**model, **(model_extra or {})},
            "config": {"train_batch_size": batch, "optimizer": optimizer, **config}}


class Folder:
    """A new folder, in which the cases of a class of tests are written and run."""

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

    def run(self, cases):
        """Runs case folders in one start; returns their outputs."""
        outs, batch = [self.new("out") for _ in cases], self.new("list")
        for out in outs:
            out.mkdir()
        lines = [json.dumps({"case": str(one), "out": str(out)}) + "\n" for one, out in zip(cases, outs)]
        batch.write_text("".join(lines))
        done = subprocess.run([PROGRAM, "run", "--batch", batch], capture_output=True, text=True, check=False)
        statuses = [json.loads((out / "status.json").read_text()) for out in outs]
        assert all(status == {"status": "ok", "message": ""} for status in statuses), (statuses, done.stderr)
        return outs


def difference(values, truth):
    """The norm of the difference over the norm of the truth; where the truth is zero, the norm of the values."""
    distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(values, truth, strict=True)))
    size = math.sqrt(sum(b * b for b in truth))
    return distance / size if size else distance


class WithoutTorch(unittest.TestCase):
    def test_each_adapter_has_fewer_than_200_lines(self):
        for name in ("torch_python", "ddp"):
            self.assertLess(len(PROGRAM.with_name(name).read_text().splitlines()), 200)

    def test_a_missing_pytorch_is_one_line_and_exit_code_4(self):
        for arguments in (["describe"], ["run", "--batch", "none"]):
            done = subprocess.run([PROGRAM, "--packages", "/nowhere", *arguments], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (4, "", 1), done.stderr)
            self.assertIn("torch_python: no PyTorch in /nowhere", done.stderr)

    def test_without_packages_it_looks_into_the_cache_folder(self):
        environment = {**os.environ, "XDG_CACHE_HOME": "/nowhere/cache"}
        done = subprocess.run([PROGRAM, "describe"], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (4, "", 1), done.stderr)
        self.assertIn("no PyTorch in /nowhere/cache/plumbline/", done.stderr)

    def test_a_pytorch_that_cannot_be_loaded_is_one_line_and_exit_code_4(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "torch")
            package.mkdir()
            (package / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cannot open\\nsecond line')\n")
            done = subprocess.run([PROGRAM, "--packages", folder, "describe"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertEqual(done.stderr, "torch_python: PyTorch cannot be loaded: libtorch_cpu.so: cannot open\n")


class Formulas(unittest.TestCase):
    """Against the formulas of docs/semantics.md, on one rank; all cases in one start."""

    SCALERS = (1, False), (2, False), (2, True)
    FINITE = {"tied": {}, "untied": {"tied_head": False, "layers": 2, "norm_epsilon": 0.01}}

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder(cls.addClassCleanup)
        cls.planned = {("finite", name): (case(SMALL, SGD, batch=3, model_extra=extra), cls.enlarge)
                       for name, extra in cls.FINITE.items()}
        groups = [{**GROUPS[0], "betas": BETAS}, *GROUPS[1:]]
        for name, optimizer in (("adamw", ADAMW), ("coupled", COUPLED)):
            adam = case(ODD, optimizer, steps=2, first_step=6, param_groups=groups, scheduler=WARMUP,
                        gradient_clipping=0.05)
            cls.planned[name] = (adam, cls.inject(4))
        for name, optimizer in (("sgd", MOMENTUM), ("nesterov", NESTEROV)):
            sgd = case(ODD, optimizer, steps=3, first_step=2, param_groups=GROUPS, gradient_clipping=0.05)
            cls.planned |= {(name, updates): (sgd, cls.inject(updates)) for updates in (0, 1)}
        for name, optimizer in (("AdamW", ADAMW), ("momentum", MOMENTUM), ("SGD", SGD)):
            spec = case(ODD, optimizer, steps=4, scheduler=WARMUP, gradient_clipping=0.05)
            cls.planned["skip", name] = (spec, cls.poison)
        for hysteresis, forgives in cls.SCALERS:
            fp16 = {"enabled": True, "initial_scale_power": 18, "loss_scale_window": 2, "hysteresis": hysteresis,
                    "consecutive_hysteresis": forgives, "min_loss_scale": 2}
            cls.planned["scaler", hysteresis, forgives] = (case(ODD, SGD, steps=10, fp16=fp16), cls.scale(hysteresis))
        cases = [cls.folder.write(spec) for spec, _ in cls.planned.values()]
        for one, (_, change) in zip(cases, cls.planned.values()):
            if change:
                change(one)
        cls.runs = {key: (one, out) for key, one, out in zip(cls.planned, cases, cls.folder.run(cases))}

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
    def scale(hysteresis):
        """A scale at which gradients have no value in fp16, so that it is halved first."""
        def change(folder):
            tensors, metadata = case_folder.read_tensors(folder / "state.safetensors")
            scaler = {"loss_scale": str(2.0**20), "loss_scale_hysteresis": str(hysteresis)}
            case_folder.write_tensors(folder / "state.safetensors", tensors, {**metadata, **scaler})
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
        weights, state = (case_folder.read_tensors(folder / name)[0]
                          for name in ("weights.safetensors", "state.safetensors"))
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
            weights = {key.removeprefix("master/"): list(values) for key, values in start.items()
                       if key.startswith("master/")}
            loss = loss_formula.loss(model, weights, batch)
            self.assertLessEqual(abs(record["loss"] - loss), GRADIENT_BOUND * loss)
            for tensor in weights:
                with self.subTest(tensor=tensor, **extra):
                    truth = loss_formula.gradient(model, weights, batch, tensor)
                    self.assertGreater(max(map(abs, truth)), 1e-6)
                    self.assertLessEqual(difference(dump["gradient/" + tensor], truth), GRADIENT_BOUND)

    @staticmethod
    def group_of(name):
        """The place of its group in `lr`, its weight decay, its betas: GROUPS and the optimizers, read by a person."""
        if name.endswith(".bias"):
            return 1, 0.0, (0.5, 0.75)
        return (2, 0.1, (0.8, 0.95)) if name.startswith("layers.") else (3, 0.2, (0.8, 0.95))

    def check_steps(self, key, formula):
        """`formula(before, gradient, m, v, lr, decay, betas, step index)` gives the new weight; each step starts from
        the dump before."""
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
                    bound = 8 * 2.0**-24 * (abs(p) + abs(expected - p))
                    self.assertLessEqual(abs(after - expected), bound, (name, i, index))
            before = dump

    def test_adamw_and_adam_update_by_the_documented_formulas_from_injected_state(self):
        _, [(record, _), _] = self.states("adamw")
        # Five steps after the first: the end of the warm-up, whose highest lr is the optimizer's; group 2 asks for 0.04.
        self.assertLessEqual(difference(record["lr"], [0.02, 0.02, 0.04, 0.02]), 2.0**-50)
        eps = ADAMW["params"]["eps"]
        for name in ("adamw", "coupled"):
            def formula(p, g, m, v, lr, decay, betas, index):
                (beta1, beta2), t = betas, 4 + index + 1
                g += decay * p if name == "coupled" else 0
                m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
                p *= 1 if name == "coupled" else 1 - lr * decay
                return p - lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
            self.check_steps(name, formula)

    def test_sgd_updates_by_the_documented_formula_and_its_first_update_ignores_the_buffer(self):
        for name, updates in (("sgd", 0), ("sgd", 1), ("nesterov", 0), ("nesterov", 1)):
            _, [(record, _), *_] = self.states((name, updates))
            self.assertEqual(record["lr"], [0.1, 0.1, 0.04, 0.1])

            def formula(p, g, b, _, lr, decay, __, index):
                g += decay * p
                b = g if updates + index == 0 else 0.9 * b + g
                return p - lr * (g + 0.9 * b if name == "nesterov" else b)
            self.check_steps((name, updates), formula)

    def test_the_loss_scale_follows_the_documented_rule_by_gradscalers_own_and_by_ours(self):
        for hysteresis, forgives in self.SCALERS:
            records = case_folder.read_trace(self.runs["scaler", hysteresis, forgives][1], 0)[1:-1]
            scale, k, last, left = 2.0**20, 0, -1, hysteresis
            for record in records:
                if record["skipped"]:
                    halves = left == 1 or hysteresis == 1
                    scale, left, last = (max(scale / 2, 2), left, k) if halves else (scale, left - 1, k)
                else:
                    left = hysteresis if forgives else left
                    if (k - last) % 2 == 0:
                        scale, left = 2 * scale, hysteresis
                k += 1
                self.assertEqual(record["loss_scaler"], [scale, k, last, left], record["step"])
            skipped = [record["skipped"] for record in records]
            self.assertIn([False, False, True], [skipped[i:i + 3] for i in range(len(skipped))])  # doubled, and too far

    def test_a_gradient_that_is_not_finite_skips_the_step_but_not_the_schedule(self):
        for name in ("AdamW", "momentum", "SGD"):
            start, steps = self.states(("skip", name))
            for record, _ in steps:
                self.assertEqual([record[key] for key in ("skipped", "loss", "gradient_norm")], [True, None, None])
            self.assertGreater(steps[3][0]["lr"][0], steps[0][0]["lr"][0])
            for key, values in start.items():
                self.assertEqual(steps[3][1][key].tobytes(), values.tobytes())


if __name__ == "__main__":
    with_torch.main(PROGRAM, sys.argv[4:])
