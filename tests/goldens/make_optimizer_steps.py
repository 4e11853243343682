#!/usr/bin/env python3
"""make_optimizer_steps.py - what Paddle's optimizers make of two parameters in three steps.

    python make_optimizer_steps.py >../passes/optimizer/steps.json

Same needs as make_goldens.py. Gradients are given: the loss is the sum of the parameters times fed arrays. For
each optimizer, by the text that AppendOptimizer takes: the parameters after each step, and the names of what
apply_gradients makes persistable.
"""
import json

import numpy as np
import paddle
from paddle import nn, optimizer, regularizer, static
from paddle.incubate.optimizer import LarsMomentumOptimizer
from paddle.optimizer import lr

SPECS = """
sgd:learning_rate=0.1
sgd:learning_rate=0.1,weight_decay=0.2
sgd:learning_rate=0.1,l1_decay=0.2
sgd:learning_rate=0.1,grad_clip_value=0.5
sgd:learning_rate=0.1,grad_clip_norm=0.7
sgd:learning_rate=0.1,grad_clip_global_norm=0.7,weight_decay=0.2
momentum:learning_rate=0.1,momentum=0.8
momentum:learning_rate=0.1,weight_decay=0.2,use_nesterov=true
lars_momentum:learning_rate=0.1,momentum=0.9,lars_weight_decay=0.01
adagrad:learning_rate=0.1,initial_accumulator_value=0.5
adam:learning_rate=0.1,beta1=0.8
adam:learning_rate=0.1,epsilon=0.01,weight_decay=0.1,grad_clip_global_norm=1
adamw:learning_rate=0.1,weight_decay=0.3
adamax:learning_rate=0.1
adadelta:learning_rate=0.1,epsilon=0.01
rmsprop:learning_rate=0.1,momentum=0.5
rmsprop:learning_rate=0.1,centered=true,rho=0.9
lamb:learning_rate=0.1,lamb_weight_decay=0.1
lamb:learning_rate=0.1,lamb_weight_decay=0.0,always_adapt=true
""".split()
CLASSES = {"sgd": optimizer.SGD, "momentum": optimizer.Momentum, "lars_momentum": LarsMomentumOptimizer,
           "adagrad": optimizer.Adagrad, "adam": optimizer.Adam, "adamw": optimizer.AdamW, "adamax": optimizer.Adamax,
           "adadelta": optimizer.Adadelta, "rmsprop": optimizer.RMSProp, "lamb": optimizer.Lamb}
CLIPS = {"grad_clip_value": nn.ClipGradByValue, "grad_clip_norm": nn.ClipGradByNorm,
         "grad_clip_global_norm": nn.ClipGradByGlobalNorm}
STEPS = 3
SHAPES = {"w": [3, 2], "b": [2]}


def make(spec):
    name, options = spec.split(":")
    args = {}
    for option in options.split(","):
        key, value = option.split("=")
        value = value == "true" if value in ("true", "false") else float(value)
        if key in CLIPS:
            args["grad_clip"] = CLIPS[key](value)
        elif key == "l1_decay":
            args["weight_decay"] = regularizer.L1Decay(value)
        else:
            args[key] = value
    return CLASSES[name](**args)


def run(spec, start, gradients):
    main, startup = static.Program(), static.Program()
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup):
        terms = []
        for name, shape in SHAPES.items():
            given = static.data(name + "_given", shape, "float32")
            param = static.create_parameter(shape, "float32", attr=paddle.ParamAttr(
                name=name, initializer=nn.initializer.Assign(np.array(start[name], "float32"))))
            terms.append(paddle.sum(param * given))
        make(spec).minimize(terms[0] + terms[1])
    states = sorted(v.name for v in main.list_vars() if v.persistable and v.name not in SHAPES)
    scope, executor = static.Scope(), static.Executor()
    steps = []
    with static.scope_guard(scope):
        executor.run(startup)
        for step in gradients:
            executor.run(main, feed={k + "_given": np.array(v, "float32") for k, v in step.items()})
            values = {k: np.array(scope.find_var(k).get_tensor()) for k in SHAPES}
            steps.append({k: [float(f"{x:.7g}") for x in v.flatten()] for k, v in values.items()})
    return {"spec": spec, "states": states, "steps": steps}


def main():
    paddle.enable_static()
    rng = np.random.default_rng(1)
    draw = lambda: {k: rng.uniform(-1, 1, s).round(3).tolist() for k, s in SHAPES.items()}   # noqa: E731
    start, gradients = draw(), [draw() for _ in range(STEPS)]
    cases = ",\n".join(json.dumps(run(spec, start, gradients)) for spec in SPECS)
    print(f'{{"start": {json.dumps(start)},\n"gradients": {json.dumps(gradients)},\n"cases": [\n{cases}\n]}}')


if __name__ == "__main__":
    main()
