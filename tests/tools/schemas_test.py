#!/usr/bin/env python3
"""What the commands print with --json (or --format=json), against docs/schemas.

  schemas_test.py INTERP SOURCE_DIR

Exit code 77 (skipped) where Python has no jsonschema.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

try:
    import jsonschema
except ImportError:
    sys.exit(77)

INTERP, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SCHEMAS = os.path.join(SOURCE, "docs", "schemas")
DIGITS = os.path.join(SOURCE, "tools", "digits")
TRAIN = "train main.pdmodel --data data.npz"
START = "--startup startup.pdmodel --params w.npz"

# Schema, command, exit code. They run in one folder, one after the other; '@' stands for the folder of the digits.
CASES = [
    ("run", "run @ --feed @/image.npy", 0),
    ("run", "run @ --feed @/image.npy --repeat 3 --profile --top 3 --expect @/expected.npz", 0),
    ("run", "run @ --feed image=random:1x1x28x28 --expect @/expected.npz", 3),
    ("run", "run @ --feed @/image.npy --place sim --repeat 2 --profile", 0),
    ("run", "run log.txt --feed x=fill:-1:1x2 --fetch y", 0),
    ("run", "run empty.txt --feed x=fill:1:0x2 --fetch y --expect empty.npz", 3),
    ("run", "run @ --feed @/image.npy --scheduler engine --workers 2 --profile --repeat 1", 0),
    ("run", "run boxes.txt --feed x=image:small.png --feed b=fill:1:1x6 --boxes found=found.png", 0),
    ("bench", "bench @ --streams 1,2 --batch 1,2 --duration 20ms", 0),
    ("bench", "bench @ --streams 1 --rate 100 --duration 50ms", 0),
    ("compare", "compare @ --b=--no-gc", 0),
    ("compare", "compare @ --b=--precision=bf16", 3),
    ("train", f"{TRAIN} {START} --batch-size 2 --steps 3", 0),
    ("train", f"{TRAIN} {START} --batch-size 2 --steps 3 --profile --fetch loss --eval loss.txt "
              "--eval-data data.npz --eval-every 2 --checkpoint c", 0),
    ("train", f"{TRAIN} --batch-size 2 --steps 4 --fetch loss --checkpoint c --resume", 0),
    ("train", f"{TRAIN} {START} --batch-size 4 --steps 2 --replicas 2", 0),
    ("train", f"{TRAIN} {START} --batch-size 4 --steps 2 --micro-batches 2 --pipeline-stages 2 "
              "--place sim", 0),
    ("info", "info @", 0),
    ("info", "info @ --params @/digits.pdiparams --shape image=2x1x28x28", 0),
    ("info", "info odd.txt", 0),
    ("info", "info log.txt", 0),
    ("info-devices", "info --devices", 0),
    ("info-records", "info small.rec --records", 0),
    ("info-records", "info cut.rec", 2),
    ("verify", "verify @", 0),
    ("verify", "verify @ --place sim", 0),
    ("ops", "ops", 0),
    ("ops", "ops conv2d sum while", 0),
    ("passes", "passes", 0),
    ("passes", "passes @", 0),
    ("dump-program", "dump @ --stage=program --format", 0),
    ("dump-program", "dump @ --stage=passes --format", 0),
    ("dump-plan", "dump @ --stage=plan --format", 0),
    ("dump-plan", "dump @ --stage=plan --place sim --format", 0),
    ("dump-plan", "dump loop.txt --no-prune --stage=plan --format", 0),
    ("dump-program", "dump loop.txt --stage=program --format", 0),
    ("verify", "verify loop.txt --no-prune", 0),
    ("dump-plan", "dump main.pdmodel --stage=plan --format", 0),
]
LOG = "program version=0\nblock 0\n  var x float32[-1,2]\n  var y float32[-1,2]\n  log(X=x) -> (Out=y)\n"
BOXES = ("program version=0\nblock 0\n  var x float32[-1,3,-1,-1]\n  var b float32[-1,6]\n"
         "  var found float32[-1,6]\n  relu(X=b) -> (Out=found)\n")
ODD = ("program version=0\nblock 0\n  var feed feed_minibatch\n  var fetch fetch_list\n  var x float32[-1,2]\n"
       "  var y float32[-1,2]\n  feed(X=feed) -> (Out=x) {col=0}\n  made_up(X=x) -> (Out=y)\n"
       "  fetch(X=y) -> (Out=fetch) {col=0}\n")
LOOP = ("program version=0\nblock 0\n  var x float32[2]\n  var n float32[2]\n  var go bool[1]\n"
        "  less_than(X=x, Y=n) -> (Out=go)\n  while(X=[x, n], Condition=go) -> (Out=[x, go]) {sub_block=block:1}\n"
        "block 1 parent=0\n  increment(X=x) -> (Out=x) {step=1.0}\n  less_than(X=x, Y=n) -> (Out=go)\n")
LOSS = ("program version=0\nblock 0\n  var x float32[-1,2] check_feed stop_gradient\n  var w float32[2,1] param\n"
        "  var h float32[-1,1]\n  var loss float32[]\n  mul(X=x, Y=w) -> (Out=h)\n"
        "  reduce_mean(X=h) -> (Out=loss) {reduce_all=true}\n")


def command_of(text):
    words = [word.replace("@", DIGITS) if word[0] == "@" else word for word in text.split()]
    return [INTERP, *words, *(["json"] if words[-1] == "--format" else ["--json"])]


def output_of(text, code):
    done = subprocess.run(command_of(text), capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"{text}: exit code {done.returncode}, expected {code}: {done.stderr}")
    return json.loads(done.stdout)


def png(width, height, rgb):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + rgb[y * width * 3:(y + 1) * width * 3] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_files():
    files = {"log.txt": LOG, "weight.txt": LOG.replace("var x", "var w").replace("X=x", "X=w").replace(",2]", ",1]"), "empty.txt": LOG, "loop.txt": LOOP, "loss.txt": LOSS, "odd.txt": ODD,
             "boxes.txt": BOXES}
    for name, text in files.items():
        with open(name, "w") as file:
            file.write(text)
    with open("small.png", "wb") as file:
        file.write(png(2, 1, bytes(6)))
    for name, program, shape, file in [("x", "log.txt", "4x2", "data.npz"), ("w", "weight.txt", "2x1", "w.npz"),
                                       ("x", "log.txt", "1x2", "empty.npz")]:
        fetch = "y" if file == "empty.npz" else name
        subprocess.run([INTERP, "run", program, "--feed", f"{name}=fill:1:{shape}", "--fetch", fetch, "--out", file],
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run([INTERP, "pack", ".", "-o", "small.rec"], check=True, stdout=subprocess.DEVNULL)
    with open("small.rec", "rb") as whole, open("cut.rec", "wb") as cut:
        cut.write(whole.read()[:-4])
    subprocess.run([INTERP, "backward", "loss.txt", "--loss", "loss", "--optimizer", "sgd", "-o", "main.pdmodel",
                    "--startup", "startup.pdmodel"], check=True, stdout=subprocess.DEVNULL)


class SchemasTest(unittest.TestCase):
    def test_outputs_are_what_the_schemas_say(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_files()
            for name, text, code in CASES:
                with self.subTest(text), open(os.path.join(SCHEMAS, f"{name}.json")) as file:
                    jsonschema.validate(output_of(text, code), json.load(file))
            os.chdir("/")

    def test_every_schema_is_used_and_valid(self):
        names = sorted(name.removesuffix(".json") for name in os.listdir(SCHEMAS))
        self.assertEqual(names, sorted({name for name, _, _ in CASES}))
        for name in names:
            with open(os.path.join(SCHEMAS, f"{name}.json")) as file:
                jsonschema.Draft202012Validator.check_schema(json.load(file))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
