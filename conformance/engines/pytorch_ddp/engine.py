# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch under DistributedDataParallel (Gloo, a process a rank) as an engine of the protocol: gpt2 in fp32, from the
documents alone. Declines bf16, fp16, schedules but WarmupLR, exempt groups, ZeRO over ranks, checkpoints and phase marks."""
import contextlib, ctypes, datetime, fnmatch, json, math, os, pathlib, sys, traceback
import torch, torch.distributed as distributed, torch.nn as nn

DESCRIPTION = {"protocol": 1, "name": "pytorch_ddp", "version": torch.__version__, "start": "per_rank", "batch": True,
               "families": ["gpt2"], "dtypes": ["fp32"], "optimizers": ["AdamW", "SGD"], "zero_stages": [0],
               "max_data_degree": 16, "features": ["accumulation", "dropout", "dump"]}
CONFIG = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "fp16",
          "mesh", "zero_optimization", "optimizer", "param_groups", "scheduler", "gradient_clipping"}
STATE = {"AdamW": {"moment": "exp_avg", "second_moment": "exp_avg_sq"}, "SGD": {"moment": "momentum_buffer"}}
Unsupported, LOW, STATUS = type("Unsupported", (Exception,), {}), 2**32 - 1, {0: "ok", 3: "unsupported", 5: "error"}

class Block(nn.Module):  # modules are named so that parameters have their canonical names, in the canonical order
    def __init__(self, width, heads, hidden, epsilon):
        super().__init__()
        self.heads, self.norm1 = heads, nn.LayerNorm(width, epsilon)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width)})
        self.norm2, self.gelu = nn.LayerNorm(width, epsilon), nn.GELU(approximate="tanh")
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, hidden), "down": nn.Linear(hidden, width)})

    def forward(self, x, layer, *place):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.attn["qkv"](self.norm1(x)).chunk(3, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3]) + torch.full((q.shape[2],) * 2, -math.inf).triu(1)
        o = drop(scores.softmax(-1), 17, layer, *place) @ v
        x = x + drop(self.attn["out"](o.transpose(1, 2).flatten(2)), 18, layer, *place)
        return x + drop(self.mlp["down"](self.gelu(self.mlp["up"](self.norm2(x)))), 19, layer, *place)

class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, positions, hidden, vocab, tied_head, norm_epsilon, unused, frozen, **_):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(Block(width, heads, hidden, norm_epsilon) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width, norm_epsilon), None if tied_head else nn.Linear(width, vocab, False)
        self.unused = nn.Embedding(3, 5) if unused else None
        for name in frozen:
            self.get_parameter(name).requires_grad_(False)

    def forward(self, tokens, *place):
        x = drop(self.embed(tokens) + self.pos.weight, 16, 0, *place)
        for layer, block in enumerate(self.layers):
            x = block(x, layer, *place)
        return nn.functional.linear(self.norm(x), self.embed.weight if self.head is None else self.head.weight)

def drop(y, site, layer, rate, seed, step, samples):  # drop_j of docs/semantics.md; with a rate of 0 it keeps the bits
    element = samples.unsqueeze(1) * y[0].numel() + torch.arange(y[0].numel())
    return y * (draw(seed, site, step, layer, element) >= int(rate * 2**32)).view_as(y) / (1 - rate)

def draw(seed, site, step, layer, element):  # Philox4x32-10 words; int64 tensors wrap modulo 2^64, also in the digests
    a, b, c, d = element >> 2 & LOW, element >> 34, element * 0 + step, element * 0 + (layer * 256 + site)
    for turn in range(10):
        even, odd = a * 0xD2511F53, c * 0xCD9E8D57
        a, b = odd >> 32 & LOW ^ b ^ (seed + turn * 0x9E3779B9 & LOW), odd & LOW
        c, d = even >> 32 & LOW ^ d ^ ((seed >> 32) + turn * 0xBB67AE85 & LOW), even & LOW
    return torch.stack((a, b, c, d)).gather(0, element.unsqueeze(0) & 3)[0]

def canonical(name, tensor):  # from nn.Linear's [out, in] to [in, out] and back; the head is [V, d] in both
    return (tensor.t() if name.startswith("layers.") and tensor.dim() == 2 else tensor).detach().clone().contiguous()

def read_tensors(path):
    data = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    header, body, types = json.loads(data[8:begin]), data[begin:], {"F32": torch.float32, "I32": torch.int32}
    tensor = lambda dtype, shape, data_offsets: torch.frombuffer(body[slice(*data_offsets)], dtype=types[dtype]).view(shape)
    return header.pop("__metadata__", {}), {name: tensor(**entry) for name, entry in header.items()}

def write_tensors(path, tensors):
    header, end = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": [tensor.numel()], "data_offsets": [end, end := end + tensor.nbytes]}
    text, data = json.dumps(header).encode(), b"".join(ctypes.string_at(t.data_ptr(), t.nbytes) for t in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)

def mix(x):  # the right shift must be made unsigned
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * (factor - (factor >> 63 << 64))
    return x

def digest(tensor):
    bits = tensor.flatten().view(torch.int32).long() & LOW
    return "%016x" % (mix(mix(torch.arange(bits.numel()) + (0x9E3779B97F4A7C15 - 2**64)) + bits).sum().item() % 2**64)

def make_optimizer(config, trained, metadata, state):
    kind, entries = config["optimizer"]["type"], config.get("param_groups", [])
    groups = [{"params": [], **{key: entry[key] for key in entry if key != "match"}} for entry in [{}, *entries]]
    for name, param in trained.items():
        fits = [i for i, entry in enumerate(entries, 1) if fnmatch.fnmatchcase(name, entry["match"])]
        groups[min(fits, default=0)]["params"].append(param)
    optimizer = getattr(torch.optim, kind)(groups, **config["optimizer"]["params"])
    updates = torch.tensor(float(metadata["updates"]))
    for key, value in state.items() if kind == "AdamW" or updates > 0 else ():  # SGD's first update makes the buffer
        moment, name = key.split("/", 1)
        optimizer.state[trained[name]] |= {STATE[kind][moment]: canonical(name, value), "step": updates.clone()}
    return optimizer

def set_lr(schedule, optimizer, step):
    low, high, count = (schedule["warmup_" + key] for key in ("min_lr", "max_lr", "num_steps"))
    count, k = max(2, count), max(0, step - 1)
    ramp = k / count if schedule["warmup_type"] == "linear" else math.log(k + 1) / math.log(count)
    for group in optimizer.param_groups:
        own, base = group.setdefault("own_lr", group["lr"]), optimizer.defaults["lr"]
        group["lr"] = (low + (high - low) * (ramp if k < count else 1)) * (1 if own == base else own / base)

def backward(model, batch, world, total, *place):  # of the global loss, which it returns; `total` sums over ranks
    count, loss = total(batch[2].sum()), torch.zeros((), dtype=torch.float64)
    for part, (tokens, labels, weights, samples) in enumerate(zip(*batch), 1):
        with contextlib.nullcontext() if part == len(batch[0]) else model.no_sync():
            logits = model(tokens, *place, samples).transpose(1, 2)
            share = (nn.functional.cross_entropy(logits, labels, reduction="none") * weights).sum() / count
            (share * world).backward()  # DDP averages over ranks, and the sum is due
        loss += share.detach()
    return total(loss).item(), count.item()

def train(case, case_dir, rank, world, group):  # yields (tensors, record) of each step
    config, rate, module = case["config"], case["model"].pop("dropout"), Gpt2(**case["model"])
    weights, given = (read_tensors(case_dir / name)[1] for name in ("weights.safetensors", "batches.safetensors"))
    samples = torch.arange(config["train_batch_size"]).expand(case["steps"], -1)
    module.load_state_dict({name: canonical(name, value) for name, value in weights.items()})
    params = dict(module.named_parameters())
    trained = {name: param for name, param in params.items() if param.requires_grad}
    optimizer = make_optimizer(config, trained, *read_tensors(case_dir / "state.safetensors"))
    moments = STATE[config["optimizer"]["type"]] if optimizer.defaults.get("momentum", 1) else {}
    model = nn.parallel.DistributedDataParallel(module, process_group=group, find_unused_parameters=bool(module.unused),
                                                bucket_cap_mb=config["zero_optimization"]["reduce_bucket_size"] / 2**18)
    total = lambda tensor: distributed.all_reduce(tensor, group=group) or tensor
    batches = [given[key].long() for key in ("tokens", "labels", "loss_weights")] + [samples]  # a rank has one of `world`
    steps = zip(*(values.unflatten(1, (config["gradient_accumulation_steps"], world, -1))[:, :, rank] for values in batches))
    for step, batch in enumerate(steps, case["first_step"]):
        optimizer.zero_grad()
        loss, count = backward(model, batch, world, total, rate, case["seed"], step)
        for param in trained.values():  # an unused parameter has a gradient of zero
            param.grad = torch.zeros_like(param) if param.grad is None else param.grad
        tensors = {"gradient": {name: canonical(name, param.grad) for name, param in trained.items()}}
        norm = nn.utils.get_total_norm([param.grad for param in trained.values()])
        if "scheduler" in config:
            set_lr(config["scheduler"]["params"], optimizer, step)
        skipped = not all(param.grad.isfinite().all() for param in trained.values())
        if not skipped and config["gradient_clipping"] > 0:
            nn.utils.clip_grads_with_norm_(trained.values(), config["gradient_clipping"], norm)
        if not skipped:
            optimizer.step()
        for kind, key in moments.items():
            tensors[kind] = {name: canonical(name, optimizer.state[param].get(key, torch.zeros_like(param)))
                             for name, param in trained.items()}
        tensors["master"] = tensors["weight"] = {name: canonical(name, param) for name, param in params.items()}
        loss, norm = (number if math.isfinite(number) else None for number in (loss, norm.item()))
        yield tensors, {"record": "step", "step": step, "loss": loss, "tokens": count, "gradient_norm": norm,
                        "skipped": skipped, "lr": [group["lr"] for group in optimizer.param_groups],
                        **{kind: [[name, 0, value.numel(), digest(value)] for name, value in values.items()]
                           for kind, values in tensors.items()}}

def run_case(case_dir, out_dir, rank, world):
    case, folder = json.loads((case_dir / "case.json").read_text()), out_dir / ("rank%d" % rank)
    config, kind = case["config"], case["config"]["optimizer"]["type"]
    asked = {"family " + case["family"]: case["family"] != "gpt2", "optimizer " + kind: kind not in STATE,
             **{key: config.get(key, {}).get("enabled") for key in ("bf16", "fp16")},
             "ZeRO over ranks": world > 1 and config["zero_optimization"]["stage"],
             "schedule": config.get("scheduler", {}).get("type", "WarmupLR") != "WarmupLR",
             "param_groups.clip": any(not entry.get("clip", True) for entry in config.get("param_groups", [])),
             **{"config." + key: key not in CONFIG for key in config},
             **{key: case.get(key) for key in ("save_steps", "resume", "perturbation", "phase_marks")}}
    for what in (what for what, is_asked in asked.items() if is_asked): raise Unsupported(what)
    folder.mkdir()
    group = distributed.new_group(timeout=datetime.timedelta(seconds=case["timeout_s"]))
    with open(folder / "trace.jsonl", "w") as trace, contextlib.ExitStack() as stack:
        stack.callback(distributed.destroy_process_group, group)  # peers that wait for this rank get an error
        write = lambda **record: print(json.dumps(record), file=trace, flush=True)
        write(record="header", protocol=1, engine="pytorch_ddp", rank=rank, world=world, config=case["config"])
        for tensors, record in train(case, case_dir, rank, world, group):
            if record["step"] in case["dump_steps"]:
                write_tensors(folder / ("tensors-%06d.safetensors" % record["step"]), {
                    "%s/%s@0" % (kind, name): value for kind in tensors for name, value in tensors[kind].items()})
            write(**record)
        write(record="end", steps=case["steps"])

def main(command, *arguments):
    if command == "describe":
        return print(json.dumps(DESCRIPTION), flush=True)
    single = arguments[0] == "--case"  # else --batch FILE
    cases = [{"case": arguments[1], "out": arguments[3]}] if single else map(json.loads, open(arguments[1]))
    distributed.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
    rank, world = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(1)
    for case in cases:
        case_dir, out_dir, code, message = pathlib.Path(case["case"]), pathlib.Path(case["out"]), 0, ""
        try:
            run_case(case_dir, out_dir, rank, world)
        except Exception as error:
            traceback.print_exc()
            code, message = 3 if type(error) is Unsupported else 5, "%s: %s" % (type(error).__name__, error)
        worst = torch.tensor(code)
        distributed.all_reduce(worst, distributed.ReduceOp.MAX)  # a status is written when the case is over on all ranks
        if rank == 0:
            (out_dir / "status.new").write_text(json.dumps({"status": STATUS[worst.item()], "message": message}))
            (out_dir / "status.new").rename(out_dir / "status.json")
    return distributed.destroy_process_group() or (worst.item() if single else 0)

os._exit(main(*sys.argv[1:]) or 0)  # past the teardown of Gloo's threads, which at times aborts a rank whose work is done
