# SPDX-License-Identifier: Apache-2.0
"""case.json objects for the kit's tests: one a family, with what readers get wrong in it."""
EXACT = {
    "protocol": 1, "id": "exact/kit", "family": "exact", "model": {
        "layers": 2, "width": 12, "heads": 6, "kv_heads": 2, "positions": 5, "hidden": 7, "vocab": 11,
        "weight_bound": 1, "fold_bound": 2, "gradient_fold_bound": 4, "dropout": True
    }, "config": {
        "train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3,
        "mesh": {"data": 2}, "zero_optimization": {"stage": 0}, "optimizer": {"type": "ModularMomentum"}
    }, "seed": (1 << 63) + 5, "steps": 3, "timeout_s": 60
}

GPT2 = {
    "protocol": 1, "id": "gpt2/kit", "family": "gpt2", "model": {
        "layers": 1, "width": 8, "heads": 2, "positions": 5, "hidden": 7, "vocab": 11, "dropout": 0.1,
        "tied_head": False, "unused": True, "frozen": ["pos.weight", "layers.0.norm1.bias"]
    }, "config": {
        "train_batch_size": 8, "gradient_accumulation_steps": 2, "mesh": {"data": 2}, "bf16": {"enabled": True},
        "zero_optimization": {"stage": 0},
        "optimizer": {"type": "AdamW",
                      "params": {"lr": 0.01, "betas": [0.9, 0.999],
                                 "weight_decay": 0.02}}, "param_groups": [{"match": "*norm*", "lr": 0.02},
                                                                          {"match": "*.bias", "weight_decay": 0}],
        "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.001,
                                                     "cycle_max_lr": 0.01}}, "gradient_clipping": 1.0
    }, "seed": 7, "first_step": 4, "steps": 2, "timeout_s": 60, "dump_steps": [4, 5]
}

LLAMA = {
    "protocol": 1, "id": "llama/kit", "family": "llama", "model": {
        "layers": 2, "width": 12, "heads": 3, "kv_heads": 1, "positions": 6, "hidden": 7, "vocab": 13, "unused": True,
        "unequal_lengths": True
    }, "config": {
        "train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"momentum": 0.9}},
        "fp16": {"enabled": True, "loss_scale_window": 5},
        "adaptive_clipping": {"type": "history", "warmup_steps": 3}
    }, "seed": 9, "steps": 2, "timeout_s": 60, "dump_steps": [1]
}

ALL = {"exact": EXACT, "gpt2": GPT2, "llama": LLAMA}
