# SPDX-License-Identifier: Apache-2.0
"""What an engine says of itself (docs/formats.md, describe), and whether a case is beyond that.

The harness declines such a case without a start; an engine that is started for it anyway must say `unsupported` too.
"""
FEATURES = ("accumulation", "certificate", "deterministic", "dropout", "dump", "grouped_heads", "layer_stages",
            "ledger", "loss_scaler", "memory", "norm_history", "perturbation", "save", "unequal_lengths", "unit_clipping")
ALLOWED = {
    "families": ("exact", "gpt2", "llama"), "dtypes": ("fp64", "fp32", "bf16", "fp16"),
    "optimizers": ("ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"),
    "zero_stages": (0, 1, 2, 3), "features": FEATURES
}


def describe(name, version, *, families, dtypes, optimizers, zero_stages=(0,), max_data_degree=1, features=()):
    """The object that `describe` prints. With more than one rank, the harness starts a process for each."""
    lists = {
        "families": families, "dtypes": dtypes, "optimizers": optimizers, "zero_stages": zero_stages,
        "features": features
    }
    for field, values in lists.items():
        for value in values:
            if value not in ALLOWED[field]:
                raise ValueError("%s has %r; allowed: %s" % (field, value, ", ".join(map(str, ALLOWED[field]))))
    return {
        "protocol": 1, "name": name, "version": version, "start": "per_rank" if max_data_degree > 1 else "self",
        "batch": True, **{field: list(values) for field, values in lists.items()}, "max_data_degree": max_data_degree
    }


def declined(description, case):
    """Why this engine does not run this case, or None."""
    config, model = case.config, case.model
    listed = {"families": case.family, "dtypes": config.storage, "optimizers": config.optimizer}
    for field, value in listed.items():
        if value not in description[field]:
            return "%s: %s is not among them" % (field, value)
    if config.data_degree > description["max_data_degree"]:
        return "mesh.data is %d; at most %d" % (config.data_degree, description["max_data_degree"])
    for stage in (config.stage, *config.layer_stages) if config.data_degree > 1 else ():
        if stage not in description["zero_stages"]:
            return "a stage of zero_optimization is %d" % stage
    needs = {"dropout": case.has_dropout, "grouped_heads": model.get("kv_heads", model["heads"]) != model["heads"],
             "accumulation": config.accumulation > 1, "unit_clipping": config.clips == "unit",
             "norm_history": config.clips == "history", "loss_scaler": config.has_loss_scaler,
             "layer_stages": config.data_degree > 1 and bool(config.layer_stages),
             "unequal_lengths": model.get("unequal_lengths", False),
             "save": bool(case.save_steps) or case.resume, "perturbation": case.perturbation is not None,
             "dump": bool(case.dump_steps)}
    missing = [feature for feature, is_needed in needs.items() if is_needed and feature not in description["features"]]
    return "feature %s is needed" % missing[0] if missing else None
