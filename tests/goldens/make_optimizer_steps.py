#!/usr/bin/env python3
"""make_optimizer_steps.py - what Paddle's optimizers make of two parameters in three steps.

    python make_optimizer_steps.py >../passes/optimizer/steps.json

Same needs as make_goldens.py. Gradients are given: the loss is the sum of the parameters times fed arrays. For
each optimizer, by the text that AppendOptimizer takes: the parameters after each step, and the names of what
apply_gradients makes persistable. And for each schedule the rates of the first steps.
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
# lr_schedule and its options -> Paddle's function
SCHEDULES = {
    "lr_schedule=noam,d_model=64,warmup_steps=3": lambda: lr.noam_decay(64, 3, 0.1),
    "lr_schedule=exponential,decay_steps=3,decay_rate=0.5": lambda: lr.exponential_decay(0.1, 3, 0.5),
    "lr_schedule=exponential,decay_steps=3,decay_rate=0.5,staircase=true": lambda: lr.exponential_decay(0.1, 3, 0.5, True),
    "lr_schedule=natural_exp,decay_steps=3,decay_rate=0.5,staircase=true": lambda: lr.natural_exp_decay(0.1, 3, 0.5, True),
    "lr_schedule=inverse_time,decay_steps=3,decay_rate=0.5": lambda: lr.inverse_time_decay(0.1, 3, 0.5),
    "lr_schedule=polynomial,decay_steps=3,end_learning_rate=0.01,power=2": lambda: lr.polynomial_decay(0.1, 3, 0.01, 2.0),
    "lr_schedule=polynomial,decay_steps=3,cycle=true": lambda: lr.polynomial_decay(0.1, 3, cycle=True),
    "lr_schedule=cosine,step_each_epoch=2,epochs=4": lambda: lr.cosine_decay(0.1, 2, 4),
    "lr_schedule=piecewise,boundaries=2;5,values=0.1;0.03;0.01": lambda: lr.piecewise_decay([2, 5], [0.1, 0.03, 0.01]),
    "warmup_steps=4,start_lr=0.01,end_lr=0.2": lambda: lr.linear_lr_warmup(0.1, 4, 0.01, 0.2),
    "lr_schedule=cosine,step_each_epoch=2,epochs=4,warmup_steps=3,start_lr=0.0,end_lr=0.1":
        lambda: lr.linear_lr_warmup(lr.cosine_decay(0.1, 2, 4), 3, 0.0, 0.1),
}
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


def rates(make_schedule, count=8):
    main, startup = static.Program(), static.Program()
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup):
        rate = make_schedule()
    scope, executor = static.Scope(), static.Executor()
    with static.scope_guard(scope):
        executor.run(startup)
        return [float(f"{executor.run(main, fetch_list=[rate])[0][0]:.7g}") for _ in range(count)]


def main():
    paddle.enable_static()
    rng = np.random.default_rng(1)
    draw = lambda: {k: rng.uniform(-1, 1, s).round(3).tolist() for k, s in SHAPES.items()}   # noqa: E731
    start, gradients = draw(), [draw() for _ in range(STEPS)]
    cases = ",\n".join(json.dumps(run(spec, start, gradients)) for spec in SPECS)
    schedules = ",\n".join(json.dumps({"spec": spec, "rates": rates(make)}) for spec, make in SCHEDULES.items())
    print(f'{{"start": {json.dumps(start)},\n"gradients": {json.dumps(gradients)},\n"cases": [\n{cases}\n],\n"schedules": [\n{schedules}\n]}}')


if __name__ == "__main__":
    main()
