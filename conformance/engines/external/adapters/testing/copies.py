# SPDX-License-Identifier: Apache-2.0
"""Wrong copies of the adapters, each made by replacing one text that must occur exactly once in one file.

Those of ddp and fsdp2 are mistakes that users of DistributedDataParallel and FSDP2 make, on two ranks or more with
unequal counts of tokens; those of torch_python are mistakes in what all adapters share."""
import pathlib
import shutil

# title: (program, file, text, its replacement, what `plumbline verify` says, as a pattern)
WRONG = {
    "no reduction: each rank steps on its own gradient":
        ("ddp", "adapters/ddp", "contextlib.nullcontext() if is_last else self.model.no_sync()", "self.model.no_sync()",
         "differs from rank 0's"),
    "reduced after the first micro-batch only":
        ("ddp", "plumbline_torch/trainer.py", "self.micro_batch(part + 1 == len(batch.tokens))",
         "self.micro_batch(part == 0)", "differs from rank 0's"),
    "the average over ranks where the sum is due":
        ("ddp", "adapters/ddp", "gradient * self.ranks.world", "gradient", r"the gradient is 0\.\d+ times the truth"),
    "each rank divides by its own count of tokens":
        ("ddp", "plumbline_torch/trainer.py", "int(self.total(torch.tensor(int((batch.loss_weights != 0).sum()))))",
         "int((batch.loss_weights != 0).sum())", "tokens differs from rank 0's"),
    "the last micro-batch is not reduced":
        ("fsdp2", "adapters/fsdp2", "set_requires_gradient_sync(is_last or not is_once)",
         "set_requires_gradient_sync(not is_last)", "gradient"),
    "FSDP's average over ranks where the sum is due":
        ("fsdp2", "adapters/fsdp2", "set_gradient_divide_factor(1.0)", "set_gradient_divide_factor(2.0)",
         r"gradient of .*\.5; family exact has integers only"),
    "a shard's row is taken for its first element":
        ("fsdp2", "adapters/fsdp2", "chunk.offsets[0] * math.prod(tensor.shape[1:])", "chunk.offsets[0]",
         r"gradient of embed.weight: slice .* overlaps another"),
    "the optimizer has copies of the shards":
        ("fsdp2", "adapters/fsdp2", "{name: p for name, p in self.parameters.items() if p.requires_grad}",
         "{name: torch.nn.Parameter(p.detach().clone()) for name, p in self.parameters.items() if p.requires_grad}",
         "KeyError: 0"),  # of torch.distributed.checkpoint: no parameter of the model
    "weights are not gathered again after the update":
        ("fsdp2", "adapters/fsdp2", "set_reshard_after_backward(is_last or unit not in self.kept,",
         "set_reshard_after_backward(unit not in self.kept,", "weight"),
    "GELU by the error function":
        ("torch_python", "plumbline_torch/gpt2.py", 'approximate="tanh"', 'approximate="none"', "gradient"),
    "a schedule one step late":
        ("torch_python", "plumbline_torch/schedules.py", "default_lr, s - 1)", "default_lr, s - 2)", "lr"),
}


def changed_copy(program, file, folder, old, new):
    """Copies the adapters and their packages into the new folder, with `file` changed; returns the program's path."""
    source = pathlib.Path(program).resolve().parent.parent
    left_out = shutil.ignore_patterns("testing", "*_test.py")
    for name in ("plumbline_engine", "plumbline_torch", "adapters"):
        shutil.copytree(source / name, pathlib.Path(folder) / name, ignore=left_out)
    path = pathlib.Path(folder) / file
    text = path.read_text()
    assert text.count(old) == 1, "%r occurs %d times in %s" % (old, text.count(old), file)
    path.write_text(text.replace(old, new))
    return pathlib.Path(folder) / "adapters" / pathlib.Path(program).name
