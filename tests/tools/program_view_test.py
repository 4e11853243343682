#!/usr/bin/env python3
"""The page of `interp dump --stage=program --format=html`, used as a person would, in a headless Chromium.

  program_view_test.py PROGRAM_VIEW_PAGES        the program that writes the pages to look at
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
from page_test import PageTest, main  # noqa: E402

HOSTILE = "</script><img onerror=alert(1)>"


class ProgramViewTest(PageTest):
    VIEWER = "programView"

    def head(self):
        return self.page.text("#details h2")

    def hash(self):
        return self.page.evaluate("location.hash")

    def search(self, text):
        self.page.evaluate("document.activeElement.blur()")
        self.page.press("/")
        self.page.type(text)
        return self.page.text("#hits")

    def test_first_look_tells_what_the_program_is(self):
        self.open("training.html")
        self.assertEqual(self.page.text("#title"), "training.html")
        self.assertIn("10 ops", self.page.text("#facts"))
        self.assertIn("<b>2.6.2</b>", self.section("In numbers"))
        self.assertIn("x\nfloat32[-1,4]", self.section("Inputs"))
        self.assertIn("loss", self.section("Outputs"))
        self.assertIn("update\n1 op", self.section("Parts"))
        self.assertIn("2 NaN, 1 infinite", self.section("Not finite"))
        self.assertEqual(self.drawn()["nodes"], 10)

    def test_edges_lead_down_and_boxes_do_not_overlap(self):
        for name in ("training.html", "nested.html", "large.html"):
            self.open(name)
            places = self.page.evaluate("programView.places()")
            for edge in self.page.evaluate("programView.edges()"):
                self.assertLess(places[edge["from"]]["y"], places[edge["to"]]["y"], edge)
            rows = {}
            for place in places:
                rows.setdefault(place["y"], []).append(place)
            for row in rows.values():
                self.assertLessEqual(len(row), 16)
                row.sort(key=lambda place: place["x"])
                for left, right in zip(row, row[1:]):
                    self.assertLessEqual(left["x"] + left["width"] / 2, right["x"] - right["width"] / 2)

    def test_click_shows_the_op(self):
        self.open("training.html")
        self.click_item(1)
        self.assertIn("#1", self.head())
        self.assertIn("nan", self.section("Attributes"))
        self.assertIn("long:9007199254740993", self.section("Attributes"))
        inputs = self.section("Inputs")
        for text in ("X", "float32[-1,4]", "from #0 feed", "float32[4,4]", "parameter"):
            self.assertIn(text, inputs)
        self.assertIn("#2 relu", self.section("Outputs"))
        self.assertIn("#3 elementwise_add", self.section("Read by"))
        self.assertEqual(self.hash(), "#i=1")
        self.click_item(7)
        self.assertIn("update", self.page.text("#details .sub"))

    def test_links_lead_to_producers_and_consumers(self):
        self.open("training.html", "#i=3")
        self.click_link("#2 relu")
        self.assertEqual(self.hash(), "#i=2")
        self.click_link("a")
        self.assertEqual(self.hash(), "#v=a")
        self.assertIn("#2 relu", self.section("Written by"))
        self.assertIn("#3 elementwise_add", self.section("Read by"))
        self.page.press("Escape")
        self.assertIn("The program", self.head())

    def test_a_parameter_has_statistics(self):
        self.open("training.html", "#v=w")
        values = self.section("Values")
        for text in ("float32[4,4]", "Elements\n16", "Min\n-1.5", "Max\n2", "Mean\n0.25", "Deviation\ninf",
                     "4, 25 %", "2 NaN, 1 infinite"):
            self.assertIn(text, values)
        heights = self.page.evaluate("[...document.querySelectorAll('.histogram rect')].map((e) => +e.getAttribute('height'))")
        self.assertEqual(heights[2], 1)
        self.assertEqual(heights[1], 0)
        self.assertIn("parameter", self.section("Variable"))
        self.open("training.html", "#v=unused")
        self.assertIn("Nobody", self.section("Read by"))

    def test_an_edge_tells_its_variable_and_shape(self):
        self.open("training.html")
        point = self.page.evaluate("programView.pointOfEdge(1, 2)")
        self.page.settle()
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", **point)
        self.page.settle()
        self.assertEqual(self.page.text("#tip"), "h float32[-1,4]")
        self.page.click(**point)
        self.assertEqual(self.hash(), "#v=h")

    def test_search_by_type_variable_and_attribute(self):
        self.open("training.html")
        self.assertEqual(self.search("op:fill_constant"), "1 / 2")
        self.assertEqual(self.search("var:w@GRAD"), "1 / 2")
        self.assertEqual(self.search("attr:axis=-1"), "1 / 1")
        self.assertIn("elementwise_add", self.head())
        self.assertEqual(self.search("X_NUM"), "1 / 1")
        self.assertEqual(self.search("#7"), "1 / 1")
        self.assertIn("sgd", self.head())
        self.assertEqual(self.search("no such thing"), "none")

    def test_search_goes_through_all_blocks(self):
        self.open("nested.html")
        self.assertEqual(self.search("op:relu"), "1 / 2")
        self.assertEqual(self.hash(), "#b=2&i=0")
        self.page.press("Enter")
        self.assertEqual(self.hash(), "#b=3&i=0")
        self.page.press("Enter", shift=True)
        self.assertEqual(self.hash(), "#b=2&i=0")

    def test_blocks_are_entered_and_left(self):
        self.open("nested.html")
        self.click_item(2, count=2)
        self.assertEqual(self.head(), "Block 1")
        self.assertIn("Run by #2 while of block 0", self.page.text("#details .sub"))
        self.page.evaluate("programView.pointOf(1)")
        self.page.press("Home")
        self.page.press("ArrowDown")
        self.page.press("Enter")
        self.assertEqual(self.head(), "Block 2")
        self.assertEqual(len(self.page.evaluate("[...document.querySelectorAll('#path .crumb')]")), 3)
        self.page.press("Backspace")
        self.assertEqual(self.hash(), "#b=1&i=1")
        self.page.click_on("#path li:first-child .crumb")
        self.assertEqual(self.hash(), "#i=2")

    def test_what_a_block_uses_counts_for_the_op_that_runs_it(self):
        self.open("nested.html", "#i=2")
        used = self.section("Used by the block")
        self.assertIn("reads, writes\nstate", used)
        self.assertIn("reads\nx", used)
        self.assertIn("#3 scale", self.section("Read by"))
        self.open("nested.html", "#v=state")
        self.assertIn("#0 elementwise_add of block 1", self.section("Read by"))
        self.assertIn("#2 assign of block 1", self.section("Written by"))

    def test_parts_and_families_are_colours(self):
        self.open("training.html")
        self.assertIn("backward", self.page.text("#legend"))
        self.page.press("c")
        self.assertIn("Optimizer", self.page.text("#legend"))
        self.page.click_on("#legend button")
        self.assertNotEqual(self.page.text("#hits"), "")
        self.open("nested.html")
        self.assertTrue(self.page.evaluate("document.getElementById('toggle-parts').disabled"))

    def test_names_are_text_whatever_they_hold(self):
        self.open("hostile.html")
        self.click_item(0)
        details = self.page.text("#details")
        for text in (HOSTILE, "<img src=x onerror=alert(2)>", "<b>op</b>", "<i>X</i>", "<u>attr</u>", "</script><script>alert(3)</script>"):
            self.assertIn(text, details)
        self.click_item(1)
        self.click_link("__proto__")
        self.assertIn("float32[2]", self.section("Variable"))
        self.search("<img")
        point = self.page.evaluate("programView.pointOf(0)")
        self.page.settle()
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", **point)
        self.page.settle()
        self.assertIn("<img src=x", self.page.text("#tip"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img, b b, u, #details i').length"), 0)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('script').length"), 2)

    def test_damaged_and_empty_programs_can_be_looked_at(self):
        self.open("damaged.html")
        self.click_item(0)
        self.assertIn("not declared", self.section("Inputs"))
        for key in ("Enter", "Enter", "Backspace", "ArrowRight", "ArrowLeft", "0", "1", "f", "c", "End"):
            self.page.press(key)
        self.open("empty.html")
        for key in ("Home", "End", "ArrowDown", "ArrowRight", "Enter", "0", "1", "c"):
            self.page.press(key)
        self.assertIn("Ops\n0", self.section("This block"))
        self.open("nothing.html")
        self.assertIn("no block", self.page.text("#details"))

    def test_thirty_thousand_ops_are_drawn_where_one_looks(self):
        self.open("chain.html")
        self.assertLess(self.drawn()["nodes"], 100)
        self.page.press("0")
        self.assertLess(self.drawn()["nodes"], 2000)
        self.page.press("End")
        self.assertIn("#29999", self.head())
        self.assertGreater(self.drawn()["far"], 0)
        self.assertEqual(self.search("op:relu_grad"), "15000 / 15000")
        print(f"30,000 ops: {self.page.evaluate('programView.startMs'):.0f} ms to start, "
              f"{self.drawn()['ms']:.1f} ms a frame")

    def test_far_edges_are_drawn_when_asked_for(self):
        self.open("large.html")
        self.assertEqual(self.drawn()["far"], 0)
        self.page.press("f")
        self.assertGreater(self.drawn()["far"], 0)

    def test_wheel_scrolls_and_zooms_and_the_strip_jumps(self):
        self.open("large.html")
        nodes = self.drawn()["nodes"]
        self.page.wheel(400, 400, 300, ctrl=True)
        self.assertNotIn("90 %", self.page.text("#where"))
        self.assertGreater(self.drawn()["nodes"], nodes)
        before = self.page.evaluate("programView.inWindow(0, 0)")
        strip = self.page.evaluate("document.getElementById('canvas').getBoundingClientRect().right - 20")
        self.page.click(strip, 700)
        self.assertNotEqual(self.page.evaluate("programView.inWindow(0, 0)"), before)
        self.page.wheel(400, 400, 600)

    def test_keys_are_explained(self):
        self.open("training.html")
        self.page.press("?")
        self.assertTrue(self.page.evaluate("document.getElementById('help').open"))
        self.page.press("Escape")
        self.assertFalse(self.page.evaluate("document.getElementById('help').open"))

    def test_dark_theme_is_dark(self):
        self.open("training.html")
        self.page.dark(True)
        self.page.settle()
        pixel = self.page.evaluate("[...document.getElementById('canvas').getContext('2d').getImageData(2, 500, 1, 1).data]")
        self.page.dark(False)
        self.assertLess(max(pixel[:3]), 60)


if __name__ == "__main__":
    main()
