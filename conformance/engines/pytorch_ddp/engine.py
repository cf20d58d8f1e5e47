# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch with DistributedDataParallel over Gloo as an engine of the protocol: gpt2 in fp32, one process a rank.

Written from docs/formats.md and docs/semantics.md alone; docs/adding-an-engine.md explains it. It declines bf16, dropout,
ZeRO over several ranks, checkpoints, perturbations and phase marks, and keeps no ledger."""
import contextlib, ctypes, datetime, fnmatch, json, math, os, pathlib, sys, traceback
try:
    import torch
    from torch import distributed, nn
except (ImportError, OSError) as missing:  # OSError: a shared library of PyTorch is not there
    sys.exit(print("pytorch_ddp: PyTorch cannot be loaded:", str(missing).splitlines()[0], file=sys.stderr) or 4)

DESCRIPTION = {"protocol": 1, "name": "pytorch_ddp", "version": torch.__version__, "start": "per_rank", "batch": True,
               "families": ["gpt2"], "dtypes": ["fp32"], "optimizers": ["AdamW", "SGD"], "zero_stages": [0],
               "max_data_degree": 16, "features": ["accumulation", "dump"]}
CONFIG = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16", "mesh",
          "zero_optimization", "optimizer", "param_groups", "scheduler", "gradient_clipping"}
STATE = {"AdamW": {"moment": "exp_avg", "second_moment": "exp_avg_sq"}, "SGD": {"moment": "momentum_buffer"}}
Unsupported = type("Unsupported", (Exception,), {})  # the case asks for what this engine does not do

class Block(nn.Module):  # modules are named so that parameters have their canonical names, in the canonical order
    def __init__(self, width, heads, hidden, epsilon):
        super().__init__()
        self.heads, self.norm1 = heads, nn.LayerNorm(width, epsilon)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width)})
        self.norm2, self.gelu = nn.LayerNorm(width, epsilon), nn.GELU(approximate="tanh")
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, hidden), "down": nn.Linear(hidden, width)})

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.attn["qkv"](self.norm1(x)).chunk(3, -1))
        o = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["out"](o.transpose(1, 2).flatten(2))
        return x + self.mlp["down"](self.gelu(self.mlp["up"](self.norm2(x))))

class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, positions, hidden, vocab, tied_head, norm_epsilon, unused, frozen, dropout):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(positions, width)
        self.layers = nn.Sequential(*(Block(width, heads, hidden, norm_epsilon) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, norm_epsilon)
        self.head = None if tied_head else nn.Linear(width, vocab, bias=False)
        self.unused = nn.Embedding(3, 5) if unused else None
        for name in frozen:
            self.get_parameter(name).requires_grad_(False)

    def forward(self, tokens):
        x = self.norm(self.layers(self.embed(tokens) + self.pos.weight))
        return nn.functional.linear(x, self.embed.weight if self.head is None else self.head.weight)

def canonical(name, tensor):  # from nn.Linear's [out, in] to [in, out] and back; the head is [V, d] in both
    return (tensor.t() if name.startswith("layers.") and tensor.dim() == 2 else tensor).detach().clone().contiguous()

def read_tensors(path):
    data = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    header, types = json.loads(data[8:begin]), {"F32": torch.float32, "I32": torch.int32}
    tensor = lambda dtype, shape, data_offsets: torch.frombuffer(
        data[begin + data_offsets[0]:begin + data_offsets[1]], dtype=types[dtype]).view(shape)
    return header.pop("__metadata__", {}), {name: tensor(**entry) for name, entry in header.items()}

def write_tensors(path, tensors):
    header, end = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": [tensor.numel()], "data_offsets": [end, end := end + tensor.nbytes]}
    text = json.dumps(header).encode()
    data = b"".join(ctypes.string_at(tensor.data_ptr(), tensor.nbytes) for tensor in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)

def mix(x):  # int64 tensors wrap modulo 2^64, as the digest does; the right shift must be made unsigned
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * (factor - (factor >> 63 << 64))
    return x

def digest(tensor):
    bits = tensor.flatten().view(torch.int32).long() & 0xFFFFFFFF
    return "%016x" % (mix(mix(torch.arange(bits.numel()) + (0x9E3779B97F4A7C15 - 2**64)) + bits).sum().item() % 2**64)

def check(case, world):
    config, kind = case["config"], case["config"]["optimizer"]["type"]
    asked = {"family " + case["family"]: case["family"] != "gpt2", "optimizer " + kind: kind not in STATE,
             "bf16": config["bf16"]["enabled"], "ZeRO over ranks": world > 1 and config["zero_optimization"]["stage"],
             "mesh.data %d with %d ranks" % (config["mesh"]["data"], world): config["mesh"]["data"] != world,
             "dropout": case["model"].get("dropout"), **{"config." + key: key not in CONFIG for key in config},
             **{key: case.get(key) for key in ("save_steps", "resume", "perturbation", "phase_marks")}}
    for what in (what for what, is_asked in asked.items() if is_asked):
        raise Unsupported(what)

def make_optimizer(config, trained, metadata, state):
    kind, entries = config["optimizer"]["type"], config.get("param_groups", [])
    groups = [{"params": [], **{key: entry[key] for key in entry if key != "match"}} for entry in [{}, *entries]]
    for name, param in trained.items():
        fits = [i for i, entry in enumerate(entries, 1) if fnmatch.fnmatchcase(name, entry["match"])]
        groups[min(fits, default=0)]["params"].append(param)
    optimizer = getattr(torch.optim, kind)(groups, **config["optimizer"]["params"])
    for name, param in trained.items():
        optimizer.state[param]["step"] = torch.tensor(float(metadata["updates"]))
        for moment, key in STATE[kind].items():
            if moment + "/" + name in state and (kind != "SGD" or metadata["updates"] != "0"):  # SGD's first makes it
                optimizer.state[param][key] = canonical(name, state[moment + "/" + name])
    return optimizer

def set_lr(schedule, optimizer, step):
    low, high, count = (schedule["warmup_" + key] for key in ("min_lr", "max_lr", "num_steps"))
    count, k = max(2, count), max(0, step - 1)
    ramp = k / count if schedule["warmup_type"] == "linear" else math.log(k + 1) / math.log(count)
    for group in optimizer.param_groups:
        own, base = group.setdefault("own_lr", group["lr"]), optimizer.defaults["lr"]
        group["lr"] = (low + (high - low) * (ramp if k < count else 1)) * (1 if own == base else own / base)

def backward(model, batch, world, total):  # of the global loss, returned; `total` sums over ranks
    count, loss = total(batch["loss_weights"].sum()), torch.zeros((), dtype=torch.float64)
    parts = list(zip(batch["tokens"], batch["labels"], batch["loss_weights"]))
    for tokens, labels, weights in parts:
        with contextlib.nullcontext() if tokens is parts[-1][0] else model.no_sync():
            errors = nn.functional.cross_entropy(model(tokens).transpose(1, 2), labels, reduction="none")
            share = (errors * weights).sum() / count
            (share * world).backward()  # DDP averages over ranks, and the sum is due
        loss += share.detach()
    return total(loss).item(), count.item()

def train(case, case_dir, rank, world, group):  # yields (tensors, record) of each step
    config, first, module = case["config"], case["first_step"], Gpt2(**case["model"])
    weights, batches = (read_tensors(case_dir / name)[1] for name in ("weights.safetensors", "batches.safetensors"))
    module.load_state_dict({name: canonical(name, value) for name, value in weights.items()})
    params = dict(module.named_parameters())
    trained = {name: param for name, param in params.items() if param.requires_grad}
    optimizer = make_optimizer(config, trained, *read_tensors(case_dir / "state.safetensors"))
    moments = STATE[config["optimizer"]["type"]] if optimizer.defaults.get("momentum", 1) else {}
    bucket_mib = config["zero_optimization"]["reduce_bucket_size"] * 4 / 2**20
    model = nn.parallel.DistributedDataParallel(module, process_group=group, bucket_cap_mb=bucket_mib,
                                                find_unused_parameters=module.unused is not None)
    for step in range(first, first + case["steps"]):
        shape = (config["gradient_accumulation_steps"], world, -1)  # samples are ordered so
        batch = {key: value[step - first].long().unflatten(0, shape)[:, rank] for key, value in batches.items()}
        optimizer.zero_grad()
        loss, count = backward(model, batch, world, lambda x: distributed.all_reduce(x, group=group) or x)
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
    check(case, world)
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
        return print(json.dumps(DESCRIPTION))
    single = arguments[0] == "--case"  # else --batch FILE
    cases = [{"case": arguments[1], "out": arguments[3]}] if single else map(json.loads, open(arguments[1]))
    rank, world, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    store = distributed.TCPStore(os.environ["MASTER_ADDR"], port, world, is_master=rank == 0)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    torch.set_num_threads(1)
    for index, case in enumerate(cases):
        case_dir, out_dir = pathlib.Path(case["case"]), pathlib.Path(case["out"])
        try:
            report = run_case(case_dir, out_dir, rank, world) or ("ok", "")
        except Exception as error:
            traceback.print_exc()
            report = "unsupported" if type(error) is Unsupported else "error", "%s: %s" % (type(error).__name__, error)
        store.set("%d/%d" % (index, rank), json.dumps(report))
        if rank == 0:  # the status is written when the case is over on all ranks
            reports = [json.loads(store.get("%d/%d" % (index, peer))) for peer in range(world)]
            report = next((report for report in reports if report[0] != "ok"), reports[0])
            (out_dir / "status.new").write_text(json.dumps({"status": report[0], "message": report[1]}))
            (out_dir / "status.new").rename(out_dir / "status.json")
    return {"ok": 0, "unsupported": 3, "error": 1}[report[0]] if single else 0

sys.exit(main(*sys.argv[1:]))
