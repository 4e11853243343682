"""What tests of the pages share that `interp dump --format=html` writes.

A test is run with the program that writes the pages to look at. Exit code 77 (skipped) when no Chromium is installed;
CHROMIUM names one.
"""
import os
import subprocess
import sys
import tempfile
import unittest

from browser import Page, find_browser


class PageTest(unittest.TestCase):
    VIEWER = ""  # the page's own object, which tells what is drawn where

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.argv[1], cls.folder.name], check=True)
        cls.page = Page(find_browser())

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.folder.cleanup()

    def tearDown(self):
        self.assertEqual(self.page.errors, [])
        self.assertEqual([url for url in self.page.requests if url.partition(":")[0] not in ("file", "data", "about")], [])
        self.assertEqual(len([url for url in self.page.requests if url.startswith("file:")]), 1)

    def open(self, name, fragment=""):
        self.page.open(os.path.join(self.folder.name, name), fragment)

    def click_item(self, number, count=1):
        """Clicks the instruction or op of that number."""
        point = self.page.evaluate(f"{self.VIEWER}.pointOf({number})")
        self.page.settle()
        self.page.click(point["x"], point["y"], count)

    def click_link(self, text):
        """Clicks what leads on in the details, by its text."""
        self.page.evaluate(
            f"[...document.querySelectorAll('#details button')].find((e) => e.textContent === '{text}').click()")
        self.page.settle()

    def section(self, title):
        return self.page.evaluate(
            "[...document.querySelectorAll('#details section')].find((e) => "
            f"e.querySelector('h3').textContent.startsWith('{title}'))?.innerText")

    def drawn(self):
        self.page.settle()
        return self.page.evaluate(f"{self.VIEWER}.drawn()")


def main():
    if find_browser() is None:
        print("skipped: no Chromium is installed (Debian: apt-get install chromium)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
