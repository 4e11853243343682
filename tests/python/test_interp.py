"""The Python package, as a wheel has it; run by wheel_test.py."""
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import numpy as np

import interp
from interp import inference

SOURCE = pathlib.Path(os.environ["INTERP_SOURCE"])
DIGITS = SOURCE / "tools/digits"
OUTPUT = "save_infer_model/scale_0.tmp_0"

ENDLESS = """program version=0
block 0
  var i float32[1]
  var zero float32[1]
  var go bool[1]
  var scopes step_scopes
  fill_constant() -> (Out=i) {shape=longs:[1], value=1.0, dtype=5}
  fill_constant() -> (Out=zero) {shape=longs:[1], value=0.0, dtype=5}
  less_than(X=zero, Y=i) -> (Out=go)
  while(X=[i,zero], Condition=go) -> (Out=[i,go], StepScopes=scopes) {sub_block=block:1}
block 1 parent=0
  scale(X=i) -> (Out=i) {scale=1.0}
  less_than(X=zero, Y=i) -> (Out=go)
"""

LINE = """program version=0
block 0
  var x float32[-1,1]
  var y float32[-1,1]
  var w float32[1,1] param
  var p float32[-1,1]
  var d float32[-1,1]
  var s float32[-1,1]
  var loss float32[1]
  mul(X=x, Y=w) -> (Out=p) {x_num_col_dims=1, y_num_col_dims=1}
  elementwise_sub(X=p, Y=y) -> (Out=d) {axis=-1}
  square(X=d) -> (Out=s)
  mean(X=s) -> (Out=loss)
"""

START = """program version=0
block 0
  var w float32[1,1] param
  fill_constant() -> (Out=w) {shape=longs:[1,1], value=0.0, dtype=5}
"""


def program_of(op, dtype, lod=0):
    level = f" lod={lod}" if lod else ""
    return (f"program version=0\nblock 0\n  var x {dtype}[-1,1]{level}\n"
            f"  var y {dtype}[-1,1]{level}\n  {op}\n")


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def predictor(self, text, **options):
        path = os.path.join(self.folder.name, "program.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return interp.Predictor(path, **options)


class PredictorTest(WithFolder):
    def setUp(self):
        super().setUp()
        self.image = np.load(DIGITS / "image.npy")
        self.expected = np.load(DIGITS / "expected.npz")[OUTPUT]

    def test_reads_a_folder_a_prefix_and_files(self):
        for model, params in ((DIGITS, None), (DIGITS / "digits", None),
                              (DIGITS / "digits.pdmodel", DIGITS / "digits.pdiparams")):
            predictor = interp.Predictor(model, params)
            np.testing.assert_allclose(predictor.run(self.image)[OUTPUT], self.expected, 1e-5)

    def test_tells_its_inputs_and_outputs(self):
        predictor = interp.Predictor(DIGITS)
        self.assertEqual(predictor.inputs,
                         [("image", "float32", "float32", (-1, 1, 28, 28))])
        self.assertEqual(predictor.output_names, [OUTPUT])

    def test_runs_on_the_place_asked_for(self):
        predictor = interp.Predictor(DIGITS, place="sim:1", tf32=True)
        self.assertIn("sim:1", str(predictor.plan()))
        np.testing.assert_allclose(predictor.run(self.image)[OUTPUT], self.expected, 1e-5)

    def test_feeds_go_by_name_by_position_and_as_lists(self):
        predictor = interp.Predictor(DIGITS)
        for results in (predictor.run({"image": self.image}), predictor.run(self.image),
                        predictor.run(self.image.tolist()),
                        predictor.run(np.asfortranarray(self.image))):
            np.testing.assert_allclose(results[OUTPUT], self.expected, 1e-5)

    def test_wrong_feeds_are_errors_that_say_what(self):
        predictor = interp.Predictor(DIGITS)
        for feeds, text in (((), "there are 0 feeds, expected 1: image"),
                            (({"img": self.image},), "feed 'img' is unknown; inputs are image"),
                            (({},), "input 'image' is not fed"),
                            ((self.image.astype(np.float64),), "expected float32"),
                            ((self.image.astype("U3"),), "feed 'image': an array of <U3"),
                            ((self.image.astype(">f4"),), "feed 'image': an array of >f4"),
                            ((np.zeros((1,) * 10, "f4"),), "has 10 dims, expected 9 or fewer"),
                            ((self.image[0],), "expected float32[-1,1,28,28]")):
            with self.assertRaises(interp.InvalidArgument) as caught:
                predictor.run(*feeds)
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(ValueError):
            predictor.run(self.image, timeout=-1)
        with self.assertRaises(ValueError):
            predictor.run(self.image, timeout=float("nan"))
        with self.assertRaises(interp.InvalidArgument):
            predictor.run(self.image, lod={"image": [[0, 5]]})

    def test_errors_are_of_the_built_in_kinds(self):
        with self.assertRaises(LookupError) as caught:
            interp.Predictor("/no/such/model")
        self.assertIsInstance(caught.exception, interp.NotFound)
        self.assertEqual(caught.exception.code, "not found")
        self.assertIn("/no/such/model", str(caught.exception))
        with self.assertRaises(interp.InvalidArgument):
            interp.Predictor(DIGITS, scheduler="clever")
        # As a product with workers the larger one would be 0 in 32 bits.
        for count in (0, 1 << 22):
            expected = f"num_streams is {count}, expected"
            with self.assertRaisesRegex(interp.InvalidArgument, expected):
                interp.Predictor(DIGITS, num_streams=count, num_workers=1024)
        with self.assertRaisesRegex(interp.InvalidArgument, "num_threads is -1, expected 0 to"):
            interp.Predictor(DIGITS, num_threads=-1)
        with self.assertRaisesRegex(interp.InvalidArgument, "num_workers is 0, expected 1 to"):
            interp.Predictor(DIGITS, num_workers=0)
        with self.assertRaisesRegex(interp.NotFound, "/no/such/folder"):
            interp.Predictor(DIGITS, file_folder="/no/such/folder")
        with self.assertRaisesRegex(interp.InvalidArgument, "place: .*'gpu'"):
            interp.Predictor(DIGITS, place="gpu")
        with self.assertRaises(TypeError):
            interp.Predictor(DIGITS, tf32="very")
        with self.assertRaisesRegex(interp.InvalidArgument, "nothing of the program runs on a GPU"):
            interp.Predictor(DIGITS, cuda_graphs=True)
        with self.assertRaisesRegex(TypeError, "there is no option 'threads'; options are"):
            interp.Predictor(DIGITS, threads=1)
        with self.assertRaises(interp.ResourceExhausted):
            interp.Predictor(DIGITS, max_memory_bytes=64).run(self.image)

    def test_results_outlive_the_predictor_and_are_nobody_elses(self):
        predictor = interp.Predictor(DIGITS)
        first = predictor.run(self.image)[OUTPUT]
        second = predictor.run(np.zeros_like(self.image))[OUTPUT]
        del predictor
        gc.collect()
        np.testing.assert_allclose(first, self.expected, 1e-5)
        self.assertFalse(np.shares_memory(first, second))
        first[:] = 0
        self.assertAlmostEqual(second.sum(), 1, places=5)

    def test_feeds_are_let_go_after_the_run(self):
        class Tracked(np.ndarray):
            pass

        predictor = interp.Predictor(DIGITS)
        image = self.image.view(Tracked)
        gone = weakref.ref(image)
        result = predictor.run(image)
        del image
        gc.collect()
        self.assertIsNone(gone())
        np.testing.assert_allclose(result[OUTPUT], self.expected, 1e-5)

    def test_arrays_that_may_not_be_written_are_fed(self):
        image = self.image.copy()
        image.flags.writeable = False
        result = interp.Predictor(DIGITS).run(image)
        np.testing.assert_allclose(result[OUTPUT], self.expected, 1e-5)

    def test_arrays_that_are_not_aligned_are_copied(self):
        memory = np.zeros(self.image.nbytes + 1, np.uint8)
        image = memory[1:].view(np.float32).reshape(self.image.shape)
        image[:] = self.image
        self.assertFalse(image.flags.aligned)
        result = interp.Predictor(DIGITS).run(image)
        np.testing.assert_allclose(result[OUTPUT], self.expected, 1e-5)

    def test_threads_run_side_by_side(self):
        predictor = interp.Predictor(DIGITS, num_streams=2)
        wrong = []

        def call():
            for _ in range(50):
                if not np.allclose(predictor.run(self.image)[OUTPUT], self.expected, 1e-5):
                    wrong.append(1)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_lods_go_in_and_come_out(self):
        predictor = self.predictor(program_of("scale(X=x) -> (Out=y) {scale=2.0}", "float32", 1),
                                   feeds=["x"], fetches=["y"])
        x = np.array([[1], [2], [3]], np.float32)
        results = predictor.run({"x": x}, lod={"x": [[0, 1, 3]]})
        np.testing.assert_array_equal(results["y"], 2 * x)
        self.assertEqual(results.lod, {"y": [[0, 1, 3]]})
        self.assertEqual(predictor.run(x).lod, {})
        with self.assertRaisesRegex(interp.InvalidArgument, "ends with 4, expected 3"):
            predictor.run({"x": x}, lod={"x": [[0, 4]]})

    def test_dtypes_map_to_numpys(self):
        for dtype, array in (("bfloat16", "uint16"), ("float16", "float16"), ("int64", "int64"),
                             ("bool", "bool"), ("int8", "int8"), ("float64", "float64")):
            predictor = self.predictor(program_of("assign(X=x) -> (Out=y)", dtype), feeds=["x"],
                                       fetches=["y"])
            self.assertEqual(predictor.inputs[0].array_dtype, array)
            x = np.array([[1], [0]]).astype(array)
            y = predictor.run(x)["y"]
            self.assertEqual(y.dtype, np.dtype(array))
            np.testing.assert_array_equal(y, x)

    def test_bools_of_any_byte_are_true(self):
        predictor = self.predictor(program_of("logical_not(X=x) -> (Out=y)", "bool"), feeds=["x"],
                                   fetches=["y"])
        x = np.array([[0], [1], [2], [255]], np.uint8).view(bool)
        y = predictor.run(x)["y"]
        self.assertEqual(y.view(np.uint8).tolist(), [[1], [0], [0], [0]])

    def test_lists_become_the_nearest_bfloat16(self):
        predictor = self.predictor(program_of("assign(X=x) -> (Out=y)", "bfloat16"), feeds=["x"],
                                   fetches=["y"])
        # The last digit kept is even, odd before a tie, just above a tie.
        for value, bits in ((1, 0x3F80), (-2.5, 0xC020), (1 + 2**-8, 0x3F80),
                            (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-16, 0x3F81),
                            (float("inf"), 0x7F80), (float("nan"), 0x7FC0)):
            self.assertEqual(predictor.run([[value]])["y"].tolist(), [[bits]], value)
        array = np.array([[1], [0x3F80]], np.uint16)
        np.testing.assert_array_equal(predictor.run(array)["y"], array)

    def test_lists_are_converted_where_they_keep_their_values(self):
        for dtype, value in (("float32", [[1], [2]]), ("float32", [[0.5]]), ("float16", [[2.5]]),
                             ("float64", [[True]]), ("int32", [[-7]]), ("int8", [[-128]]),
                             ("uint8", [[255]]), ("int64", [[1 << 40]]), ("bool", [[1], [0]]),
                             ("bool", [[True]]), ("int64", [[]])):
            program = program_of("assign(X=x) -> (Out=y)", dtype).replace("[-1,1]", "[-1,-1]")
            predictor = self.predictor(program, feeds=["x"], fetches=["y"])
            self.assertEqual(predictor.run(value)["y"].tolist(), value)

    def test_lists_that_would_be_other_values_are_refused(self):
        for dtype, value, text in (("float32", [[None]], "an array of object"),
                                   ("float32", [["3"]], "an array of <U1"),
                                   ("float32", [[1], [1, 2]], "feed 'x': "),
                                   ("float32", [[1j]], "complex128 cannot be converted to float32"),
                                   ("int32", [[1.7]], "float64 cannot be converted to int32"),
                                   ("bool", [[0.5]], "float64 cannot be converted to bool"),
                                   ("bool", [[2]], "2 is no bool"),
                                   ("int8", [[1], [128]], "128 is no int8"),
                                   ("uint8", [[-1]], "-1 is no uint8"),
                                   ("float32", [[1e39]], "1e\\+39 is no float32"),
                                   ("float16", [[1], [70000]], "70000 is no float16"),
                                   ("bfloat16", [[3.4e38]], "3.4e\\+38 is no bfloat16"),
                                   ("bfloat16", [["1"]], "an array of <U1")):
            predictor = self.predictor(program_of("assign(X=x) -> (Out=y)", dtype), feeds=["x"],
                                       fetches=["y"])
            with self.assertRaisesRegex(interp.InvalidArgument, f"feed 'x'.*{text}|^{text}"):
                predictor.run(value)
        predictor = self.predictor(program_of("assign(X=x) -> (Out=y)", "float32"), feeds=["x"],
                                   fetches=["y"])
        masked = np.ma.masked_array(np.ones((2, 1), np.float32), mask=[[False], [True]])
        with self.assertRaisesRegex(interp.InvalidArgument, "feed 'x' has masked elements"):
            predictor.run(masked)
        np.testing.assert_array_equal(predictor.run(masked.filled(0))["y"], [[1], [0]])

    def test_mistakes_are_named(self):
        program = program_of("assign(X=x) -> (Out=y)", "float32")
        with self.assertRaisesRegex(interp.InvalidArgument, r"feeds is 'xx', .*as in \['xx'\]"):
            self.predictor(program, feeds="xx", fetches=["y"])
        for option in ({"max_memory_bytes": -1}, {"random_seed": -1}, {"num_threads": 1 << 40},
                       {"num_workers": -1}, {"num_streams": -1}, {"num_streams": 1 << 70}):
            name, value = [*option.items()][0]
            with self.assertRaisesRegex(interp.InvalidArgument, f"{name} is {value}, expected "):
                self.predictor(program, feeds=["x"], fetches=["y"], **option)
        for option in ({"num_threads": "3"}, {"disable_passes": "inplace"}):
            with self.assertRaisesRegex(TypeError, f"option '{[*option][0]}' is "):
                self.predictor(program, feeds=["x"], fetches=["y"], **option)
        predictor = self.predictor(program, feeds=["x"], fetches=["y"])
        for lod in ([0, 1], [[0, 1.0]], [[0, 1 << 70]], 3):
            with self.assertRaisesRegex(interp.InvalidArgument, "the LoD of 'x' is .*, expected"):
                predictor.run(np.ones((1, 1), np.float32), lod={"x": lod})
        rows = predictor.run(np.ones((2, 1), np.float32), lod={"x": np.array([[0, 1, 2]])})
        self.assertEqual(rows.lod, {"y": [[0, 1, 2]]})

    def test_a_program_that_may_not_use_files_is_denied(self):
        predictor = self.predictor(program_of('save(X=x) -> () {file_path="x"}', "float32"),
                                   feeds=["x"], disable_passes=["prune"])
        with self.assertRaises(interp.PermissionDenied) as caught:
            predictor.run(np.ones((1, 1), np.float32))
        self.assertIsInstance(caught.exception, PermissionError)

    def test_threads_that_run_do_not_disturb_the_end(self):
        code = ("import interp, threading, time, numpy\n"
                f"p = interp.Predictor({str(DIGITS / 'digits.pdmodel')!r}, num_streams=4)\n"
                f"x = numpy.load({str(DIGITS / 'image.npy')!r})\n"
                "def run():\n"
                "  while True: p.run(x)\n"
                "for _ in range(6): threading.Thread(target=run, daemon=True).start()\n"
                "p.run(x)\n")
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_fetches_twice_are_refused(self):
        program = program_of("assign(X=x) -> (Out=y)", "float32")
        with self.assertRaisesRegex(interp.InvalidArgument, "fetch 'y' is there twice"):
            self.predictor(program, feeds=["x"], fetches=["y", "x", "y"])
        with self.assertRaisesRegex(interp.InvalidArgument, "fetch 'y' is there twice"):
            interp.Trainer(interp.Program.parse(program), feeds=["x"], fetches=["y", "y"])

    def test_arrays_without_elements_and_without_dims_pass_through(self):
        predictor = self.predictor(program_of("scale(X=x) -> (Out=y) {scale=2.0}", "float32"),
                                   feeds=["x"], fetches=["y"])
        self.assertEqual(predictor.run(np.zeros((0, 1), np.float32))["y"].shape, (0, 1))

    def test_calls_end_when_they_shall_while_python_runs(self):
        predictor = self.predictor(ENDLESS, fetches=["i"])
        with self.assertRaises(TimeoutError):
            predictor.run(timeout=0.02)
        token = interp.CancelToken()
        caught = []

        def call():
            try:
                predictor.run(cancel=token, timeout=1e300)
            except interp.Cancelled as error:
                caught.append(error)

        # That this thread comes to cancel() at all shows that the run does not hold the GIL.
        thread = threading.Thread(target=call)
        thread.start()
        token.cancel()
        thread.join()
        self.assertEqual(len(caught), 1)

    def test_the_plan_is_plain_data(self):
        plan = interp.Predictor(DIGITS).plan()
        self.assertEqual(plan["instructions"][0]["type"], "feed")


class ProgramTest(unittest.TestCase):
    def test_goes_to_text_data_and_bytes(self):
        program = interp.Program.load(DIGITS / "digits.pdmodel")
        self.assertEqual(interp.Program.parse(program.to_text()).to_text(), program.to_text())
        self.assertIn("conv2d", [op["type"] for op in program.ops])
        self.assertIn("image", [var["name"] for var in program.vars])
        self.assertEqual(program.serialize(), (DIGITS / "digits.pdmodel").read_bytes())

    def test_is_planned(self):
        plan = interp.Program.parse(LINE).plan(["x", "w"], ["p"])
        self.assertIn("mul", [instruction["type"] for instruction in plan["instructions"]])

    def test_wrong_text_is_an_error(self):
        with self.assertRaises(interp.InvalidArgument):
            interp.Program.parse("block zero")
        for text in ("", "program version=0\n", "# nothing\n"):
            with self.assertRaisesRegex(interp.InvalidArgument, "expected 'block 0'"):
                interp.Program.parse(text)
        with self.assertRaises(interp.Error):
            interp.Program.load("/no/such/program")


class TrainerTest(WithFolder):
    def trainer(self):
        main, startup = interp.Program.parse(LINE).minimize(
            "loss", "sgd:learning_rate=0.1", interp.Program.parse(START))
        return interp.Trainer(main, startup, feeds=["x", "y"], fetches=["loss"])

    def test_learns_a_line(self):
        trainer = self.trainer()
        x = np.array([[1], [2]], np.float32)
        losses = [float(trainer.step(x, 3 * x)["loss"].sum()) for _ in range(50)]
        self.assertLess(losses[-1], 1e-6 * losses[0])
        self.assertEqual(trainer.num_steps, 50)
        self.assertAlmostEqual(float(trainer.parameters()["w"][0, 0]), 3, places=3)

    def test_parameters_are_copies_and_can_be_read_again(self):
        trainer = self.trainer()
        x = np.array([[1], [2]], np.float32)
        trainer.step(x, 3 * x)
        parameters = trainer.parameters()
        before = parameters["w"].copy()
        path = os.path.join(self.folder.name, "parameters.npz")
        np.savez(path, **parameters)
        trainer.step({"y": 3 * x, "x": x})
        np.testing.assert_array_equal(parameters["w"], before)
        self.assertNotEqual(trainer.parameters()["w"][0, 0], before[0, 0])
        trainer.load_parameters(path)
        np.testing.assert_array_equal(trainer.parameters()["w"], before)

    def test_lists_become_the_nearest_bfloat16(self):
        program = interp.Program.parse(program_of("assign(X=x) -> (Out=y)", "bfloat16"))
        trainer = interp.Trainer(program, feeds=["x"], fetches=["y"])
        self.assertEqual(trainer.step([[1.5], [-3]])["y"].tolist(), [[0x3FC0], [0xC040]])

    def test_an_unknown_loss_is_an_error(self):
        with self.assertRaises(interp.Error):
            interp.Program.parse(LINE).minimize("cost")
        with self.assertRaises(interp.InvalidArgument):
            interp.Program.parse(LINE).minimize("loss", "clever")


class InferenceTest(unittest.TestCase):
    def test_has_the_names_of_paddle(self):
        image = np.load(DIGITS / "image.npy")
        expected = np.load(DIGITS / "expected.npz")[OUTPUT]
        config = inference.Config(str(DIGITS / "digits.pdmodel"), str(DIGITS / "digits.pdiparams"))
        config.set_cpu_math_library_num_threads(1)
        predictor = inference.create_predictor(config)
        self.assertEqual(predictor.get_input_names(), ["image"])
        handle = predictor.get_input_handle("image")
        with self.assertRaises(interp.FailedPrecondition):
            predictor.run()
        handle.copy_from_cpu(image)
        for each in (predictor, predictor.clone()):
            each.get_input_handle("image").share_external_data(image)
            each.run()
            output = each.get_output_handle(each.get_output_names()[0])
            np.testing.assert_allclose(output.copy_to_cpu(), expected, 1e-5)
        self.assertEqual(output.shape(), [1, 10])
        np.testing.assert_allclose(predictor.run([image])[0], expected, 1e-5)
        with self.assertRaisesRegex(interp.InvalidArgument, "the shape of 'image' is .*-1"):
            handle.reshape([-1, 1, 28, 28])
        with self.assertRaisesRegex(interp.NotFound, "there is no input 'img'; inputs are image"):
            predictor.get_input_handle("img")


    def test_settings_of_paddle_have_an_effect_or_are_refused(self):
        image = np.load(DIGITS / "image.npy")
        expected = np.load(DIGITS / "expected.npz")[OUTPUT]
        config = inference.Config()
        with self.assertRaisesRegex(interp.InvalidArgument, "the Config has no model"):
            inference.create_predictor(config)
        config.set_prog_file(str(DIGITS / "digits.pdmodel"))
        config.set_params_file(str(DIGITS / "digits.pdiparams"))
        config.disable_gpu()
        config.enable_mkldnn()
        config.disable_glog_info()
        config.switch_use_feed_fetch_ops(False)
        config.switch_specify_input_names(True)
        types = lambda: [each["type"] for each in
                         inference.create_predictor(config)._predictor.plan()["instructions"]]
        self.assertIn("fused_conv2d", types())
        config.switch_ir_optim(False)
        config.enable_memory_optim(False)
        self.assertFalse(config.ir_optim())
        self.assertNotIn("fused_conv2d", types())
        self.assertIn("inplace", config.summary())
        np.testing.assert_allclose(inference.create_predictor(config).run([image])[0], expected,
                                   1e-4, 1e-6)
        config.switch_ir_optim()
        config.enable_mkldnn_bfloat16()
        pool = inference.PredictorPool(config, 2)
        for index in range(2):
            np.testing.assert_allclose(pool.retrive(index).run([image])[0], expected, atol=0.05)
        config.delete_pass("conv_bn_fuse_pass")
        with self.assertRaisesRegex(interp.Error, "no pass named 'conv_bn_fuse_pass'"):
            inference.create_predictor(config)
        for call in (lambda: config.enable_tensorrt_engine(1 << 30), config.disable_mkldnn,
                     lambda: config.set_model_buffer(b"", 0, b"", 0), config.switch_ir_debug,
                     lambda: config.switch_use_feed_fetch_ops(True)):
            with self.assertRaisesRegex(interp.Unimplemented, "^Config[.]"):
                call()
        config.enable_use_gpu(100, 3)
        self.assertEqual((config.use_gpu(), config.gpu_device_id()), (True, 3))


class CommandTest(unittest.TestCase):
    def test_the_package_runs_the_tool(self):
        result = subprocess.run([sys.executable, "-m", "interp", "run", DIGITS / "digits.pdmodel",
                                 "--feed", DIGITS / "image.npy", "--expect",
                                 DIGITS / "expected.npz"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{OUTPUT}: ok", result.stdout)
        result = subprocess.run([sys.executable, "-m", "interp", "run", "/no/such"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 4)


if __name__ == "__main__":
    unittest.main()
