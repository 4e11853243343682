#!/usr/bin/env python3
"""The page of `interp dump --format=html`, used as a person would, in a headless Chromium.

  plan_view_test.py PLAN_VIEW_PAGES        the program that writes the pages to look at
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
from page_test import PageTest, main  # noqa: E402

HOSTILE = "</script><script>alert(1)</script>"


class PlanViewTest(PageTest):
    VIEWER = "planView"

    def way(self):
        """The texts of the bar that tells which block is shown."""
        return self.page.evaluate("[...document.querySelectorAll('#path .crumb')].map((e) => e.innerText)")

    def instruction_of(self, op_type, output):
        """The number of the instruction of that type that writes `output`."""
        return self.page.evaluate(
            "JSON.parse(document.getElementById('plan').textContent).instructions.find("
            f"(i) => i.type === '{op_type}' && Object.values(i.outputs).flat().includes('{output}')).id")

    def test_first_look_shows_the_plan_in_numbers(self):
        self.open("streams.html")
        self.assertEqual(self.page.text("#title"), "streams.html")
        self.assertIn("streams", self.page.text("#facts"))
        self.assertIn("The plan", self.page.text("#details h2"))
        for text in ("Op types", "Streams", "left", "right"):
            self.assertIn(text.lower(), self.page.text("#details").lower())
        self.assertGreater(self.drawn()["events"], 0)

    def test_click_shows_the_instruction(self):
        self.open("streams.html")
        number = self.instruction_of("mix", "stem")
        self.click_item(number)
        details = self.page.text("#details")
        self.assertIn(f"#{number}", details)
        for text in ("mix", "X[0]", "int64, rank 2", "sim:0", "compute (", "tag", "event", "memcpy_h2d"):
            self.assertIn(text, details)
        self.assertEqual(self.page.evaluate("location.hash"), f"#i={number}")

    def test_why_it_runs_after_each_predecessor(self):
        self.open("streams.html")
        number = self.instruction_of("mix", "sum")
        self.click_item(number)
        edges = self.page.evaluate(
            "[...document.querySelectorAll('#details .edge')].map((e) => [e.dataset.kind, e.dataset.shrunk, e.innerText])")
        self.assertTrue(any(kind == "raw" and "writes left, which this reads" in text for kind, _, text in edges), edges)
        self.assertTrue(any("event" in text for _, _, text in edges), edges)
        self.assertTrue(any(shrunk == "true" and "implied by" in text for _, shrunk, text in edges), edges)

    def test_waits_for_the_run_before_are_told_apart(self):
        self.open("streams.html")
        self.click_item(self.page.evaluate(
            "JSON.parse(document.getElementById('plan').textContent).instructions.find((i) => i.stream > 0).id"))
        self.assertIn("in the run before; the stream waits", self.page.text("#details"))

    def test_variables_lead_to_their_users(self):
        self.open("streams.html")
        self.click_item(self.instruction_of("mix", "stem"))
        self.page.evaluate(
            "[...document.querySelectorAll('#details .link.mono')].find((e) => e.textContent === 'stem').click()")
        details = self.page.text("#details").lower()
        for text in ("stem", "written by", "read by", "freed after"):
            self.assertIn(text, details)
        self.page.press("Escape")
        self.assertIn("The plan", self.page.text("#details h2"))

    def test_search_goes_through_the_hits(self):
        self.open("large.html")
        self.page.press("/")
        self.page.type("split2")
        count = int(self.page.text("#hits").split("/")[1])
        self.assertGreater(count, 1)
        self.assertTrue(self.page.text("#hits").startswith("1 /"))
        self.assertIn("split2", self.page.text("#details h2"))
        first = self.page.text("#details h2")
        self.page.press("Enter")
        self.assertTrue(self.page.text("#hits").startswith("2 /"))
        self.page.press("Enter", shift=True)
        self.assertEqual(self.page.text("#details h2"), first)
        self.page.click_on("#previous")
        self.assertTrue(self.page.text("#hits").startswith(f"{count} /"))
        self.page.click_on("#query")
        self.page.press("Escape")
        self.assertEqual(self.page.text("#hits"), "")

    def test_search_by_number_and_for_nothing(self):
        self.open("large.html")
        self.page.press("/")
        self.page.type("#1234")
        self.assertEqual(self.page.text("#hits"), "1 / 1")
        self.assertIn("#1234", self.page.text("#details h2"))
        self.page.type("no such thing")
        self.assertEqual(self.page.text("#hits"), "none")

    def test_shrunk_edges_are_toggled(self):
        self.open("large.html")
        self.assertEqual(self.drawn()["shrunk"], 0)
        self.page.press("0")
        self.page.click_on("#toggle-shrunk")
        shrunk = self.drawn()["shrunk"]
        self.assertGreater(shrunk, 100)
        self.page.press("e")
        self.assertEqual(self.drawn()["kept"], 0)
        self.page.press("s")
        self.assertEqual(self.drawn()["shrunk"], 0)

    def test_arrows_move_along_order_and_edges(self):
        self.open("streams.html", "#i=0")
        position = self.page.text("#details .sub")
        self.page.press("ArrowDown")
        self.assertNotEqual(self.page.text("#details .sub"), position)
        self.page.press("ArrowUp")
        self.assertEqual(self.page.text("#details .sub"), position)
        self.page.press("ArrowRight")
        self.assertIn("memcpy_h2d", self.page.text("#details h2"))
        self.page.press("ArrowLeft")
        self.assertIn("feed", self.page.text("#details h2"))
        self.page.press("End")
        self.assertIn("fetch", self.page.text("#details h2"))

    def test_keys_are_explained(self):
        self.open("streams.html")
        self.page.press("?")
        self.assertTrue(self.page.evaluate("document.getElementById('help').open"))
        self.page.press("Escape")
        self.assertFalse(self.page.evaluate("document.getElementById('help').open"))

    def test_wheel_scrolls_and_zooms(self):
        self.open("large.html")
        rows = self.page.text("#where")
        self.page.wheel(400, 400, 600)
        self.assertNotEqual(self.page.text("#where"), rows)
        self.page.wheel(400, 400, 2000, ctrl=True)
        self.assertNotIn("100 %", self.page.text("#where"))

    def test_two_thousand_instructions_are_drawn(self):
        self.open("large.html")
        self.page.press("s")
        readable = self.page.evaluate("planView.timeFrames(30)")
        self.page.press("0")
        self.assertGreater(self.drawn()["kept"], 2000)
        whole = self.page.evaluate("planView.timeFrames(5)")
        print(f"frame: {readable:.1f} ms readable, {whole:.1f} ms with the whole plan in view")

    def test_a_plan_of_one_block_has_no_bar_of_blocks(self):
        self.open("streams.html")
        self.assertEqual(self.page.evaluate("document.getElementById('path').clientHeight"), 0)

    def test_double_click_opens_the_block_that_an_instruction_runs(self):
        self.open("nested.html")
        self.assertEqual(self.way(), ["block 0"])
        self.assertIn("#3 while", self.section("Blocks it runs"))
        self.click_item(3, count=2)
        self.assertEqual(self.page.text("#details h2"), "Block 1")
        self.assertIn("Run by #3 while of block 0", self.page.text("#details .sub"))
        self.assertEqual(len(self.way()), 2)
        self.assertEqual(self.page.evaluate("location.hash"), "#b=1")
        self.assertIn("5 instructions", self.page.text("#facts"))
        self.click_item(0, count=2)
        self.assertEqual(self.page.evaluate("location.hash"), "#b=1&i=0")
        self.click_item(1)
        strip = self.page.evaluate("document.getElementById('canvas').getBoundingClientRect().right - 20")
        self.page.click(strip, 300, count=2)
        self.assertEqual(self.page.evaluate("location.hash"), "#b=1&i=1")

    def test_enter_and_backspace_go_in_and_out(self):
        self.open("nested.html", "#i=3")
        self.page.press("Enter")
        self.page.press("End")
        for _ in range(3):
            self.page.press("ArrowUp")
        self.page.press("Enter")
        self.assertEqual(self.page.text("#details h2"), "Block 2")
        self.assertEqual([text.split("\n")[-1] for text in self.way()], ["block 0", "block 1", "block 2"])
        self.page.press("Backspace")
        self.assertIn("#1conditional_block", self.page.text("#details h2"))
        self.page.press("Backspace")
        self.assertEqual(self.page.evaluate("location.hash"), "#i=3")
        self.page.press("Backspace")
        self.assertEqual(self.page.evaluate("location.hash"), "#i=3")

    def test_the_bar_leads_back_and_to_any_block(self):
        self.open("nested.html", "#b=2")
        self.page.click_on("#path li:first-child .crumb")
        self.assertEqual(self.page.evaluate("location.hash"), "#i=3")
        texts = self.page.evaluate("[...document.querySelectorAll('#path option')].map((e) => e.textContent.trim())")
        self.assertEqual([text.split(" \u00b7 ")[0] for text in texts], [f"block {i}" for i in range(5)])
        self.page.evaluate("(() => { const list = document.querySelector('#path select'); list.value = '3';"
                           " list.dispatchEvent(new Event('change')); })()")
        self.page.settle()
        self.assertEqual(self.page.text("#details h2"), "Block 3")
        self.assertIn("no rows", self.page.text("#where"))
        for key in ("Home", "End", "ArrowDown", "ArrowRight", "Enter", "0", "1"):
            self.page.press(key)
        self.assertEqual(self.page.text("#details h2"), "Block 3")

    def test_an_instruction_tells_what_its_block_captures(self):
        self.open("nested.html", "#i=3")
        captured = self.section("Captured by the block")
        for line in ("reads, writes\nstate", "reads, writes\nmore", "reads\nw", "reads\nx"):
            self.assertIn(line, captured)
        self.assertNotIn("state", self.section("Inputs"))
        self.click_link("Open block 15 instructions")
        self.assertIn("reads, writes\nstate", self.section("Captures"))

    def test_a_captured_variable_leads_to_where_it_comes_from(self):
        self.open("nested.html", "#b=2&v=x")
        self.assertIn("x of block 1", self.section("Variable"))
        self.assertIn("x of block 0", self.section("Variable"))
        self.assertIn("belongs to a block around", self.section("Freed after"))
        self.page.evaluate("[...document.querySelectorAll('#details dd .link')].at(-1).click()")
        self.assertEqual(self.page.evaluate("location.hash"), "#v=x")
        self.assertEqual(len(self.way()), 1)
        self.assertIn("x of block 1", self.section("Variable"))
        self.open("nested.html", "#b=2&i=0")
        self.click_link("from block 1")
        self.assertIn("#b=1&v=", self.page.evaluate("location.hash"))

    def test_what_the_kernel_sets_and_reads_is_told(self):
        self.open("nested.html", "#b=4")
        self.assertIn("receives\npart", self.section("With the kernel"))
        self.assertIn("returns\nmade", self.section("With the kernel"))
        self.click_link("made")
        self.assertIn("the kernel that runs the block reads it", self.section("Freed after"))
        self.open("nested.html", "#b=4&v=part")
        self.assertIn("The kernel that runs the block", self.section("Written by"))

    def test_search_looks_in_all_blocks(self):
        self.open("nested.html")
        self.page.press("/")
        self.page.type("var:next")
        self.assertEqual(self.page.text("#hits"), "1 / 5")
        self.assertEqual(self.page.evaluate("location.hash"), "#b=1&i=0")
        blocks = []
        for _ in range(5):
            blocks.append(len(self.way()))
            self.page.press("Enter")
        self.assertEqual(blocks, [2, 2, 2, 3, 3])
        self.assertEqual(self.page.text("#hits"), "1 / 5")

    def test_blocks_on_a_device(self):
        self.open("nested_device.html", "#b=2")
        self.assertGreater(self.drawn()["events"], 0)
        self.assertIn("compute", self.section("Streams"))
        self.page.press("Backspace")
        self.assertIn("next", self.section("Captured by the block"))

    def test_names_are_text_whatever_they_hold(self):
        self.open("hostile.html")
        self.click_item(0)
        details = self.page.text("#details")
        self.assertIn(HOSTILE, details)
        self.assertIn("<img src=x onerror=alert(2)>", details)
        self.page.evaluate(
            "document.querySelectorAll('#details .link.mono')[0].click()")
        self.assertIn(HOSTILE, self.page.text("#details h2"))
        self.click_item(1)
        self.assertIn("long:9007199254740993", self.page.text("#details"))
        for number in (2, 3):
            self.click_item(number)
            self.assertIn("__proto__", self.page.text("#details"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('script').length"), 2)

    def test_dark_theme_is_dark(self):
        self.open("streams.html")
        self.page.dark(True)
        background = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        pixel = self.page.evaluate("[...document.getElementById('canvas').getContext('2d').getImageData(2, 500, 1, 1).data]")
        self.page.dark(False)
        self.assertEqual(background, "rgb(14, 17, 22)")
        self.assertLess(max(pixel[:3]), 60)


if __name__ == "__main__":
    main()
