#!/usr/bin/env python3
"""The gate's own tests: what it reads, and that each kind of growth fails."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import calls  # noqa: E402
import instructions  # noqa: E402
import kept  # noqa: E402
import report  # noqa: E402

BUDGETS = """
machine = "x86_64"
[a.budget]
instructions = 10000
recv = 2.0
[a.kept]
instructions = 9000
all = 4.12
recv = 2.0
send = 2.0
epoll_wait = 0.12
"""


def verdicts(machine="x86_64", **measured):
    figures = kept.Figures(None, BUDGETS, machine)
    return {row.name: row for row in report.rows("a", measured, figures)}


class Verdicts(unittest.TestCase):
    USUAL = {"instructions": 9000, "recv": 2.0, "send": 2.0, "epoll_wait": 0.12}

    def failed(self, machine="x86_64", **changed):
        return {name for name, row in verdicts(machine, **self.USUAL | changed).items() if row.failed}

    def test_what_is_kept_passes(self):
        self.assertEqual(self.failed(), set())

    def test_five_per_cent_more_instructions_pass_and_one_more_than_that_does_not(self):
        self.assertEqual(self.failed(instructions=9450), set())
        self.assertEqual(self.failed(instructions=9451), {"instructions"})

    def test_the_budget_holds_whatever_is_kept(self):
        figures = kept.Figures(None, BUDGETS.replace("9000", "9900"), "x86_64")
        for count, failed in ((10_000, False), (10_001, True)):
            (row,) = report.rows("a", {"instructions": count}, figures)
            self.assertEqual(row.failed, failed, count)

    def test_one_call_more_in_a_hundred_requests_fails(self):
        self.assertEqual(self.failed(send=2.01), {"send"})

    def test_a_call_less_has_to_be_kept(self):
        self.assertEqual(self.failed(send=1.99), {"send"})
        without = {name: value for name, value in self.USUAL.items() if name != "send"}
        self.assertEqual({name for name, row in verdicts(**without).items() if row.failed}, {"send"})

    def test_a_new_call_fails(self):
        self.assertEqual(self.failed(shutdown=0.01), {"shutdown"})

    def test_shared_calls_may_vary(self):
        self.assertEqual(self.failed(epoll_wait=0.2, futex=0.05), set())
        self.assertEqual(self.failed(epoll_wait=0.23), {"epoll_wait"})

    def test_what_streams_share_may_vary_where_there_are_streams(self):
        budgets = BUDGETS.replace("[a.", "[h2.")
        figures = kept.Figures(None, budgets.replace("recv = 2.0\n[", "recv = 2.1\n["), "x86_64")
        for changed, failed in (
            ({"recv": 2.05, "send": 1.99, "setsockopt": 0.05}, set()),
            ({"recv": 2.06, "setsockopt": 0.06, "shutdown": 0.01}, {"recv", "setsockopt", "shutdown"}),
        ):
            rows = report.rows("h2", self.USUAL | changed, figures)
            self.assertEqual({row.name for row in rows if row.failed}, failed)

    def test_all_calls_together_have_a_budget_too(self):
        figures = kept.Figures(None, "[a.budget]\nall = 2.3\n", "x86_64")
        for recv, failed in ((1.0, set()), (1.01, {"all"})):
            rows = report.rows("a", {"recv": recv, "send": 1.3}, figures)
            self.assertEqual({row.name for row in rows if row.failed}, failed)

    def test_on_another_machine_only_budgets_count(self):
        self.assertEqual(self.failed("aarch64", instructions=9999, send=3.0), set())
        self.assertEqual(self.failed("aarch64", instructions=10_001, recv=3.0), {"instructions", "recv"})

    def test_what_grew_is_named(self):
        told = report.explain({"parse": 900.0, "write": 500.0, "new": 30.0}, {"parse": 200, "write": 500}, False)
        self.assertRegex(told, r"\+700  parse")
        self.assertRegex(told, r"\+30  new")
        self.assertNotIn("write", told)

    def test_what_is_over_the_budget_without_growth_is_told_whole(self):
        now, before = {"parse": 900.0, "new": 30.0}, {"parse": 2000}
        self.assertRegex(report.explain(now, before, False), r" 900  parse")
        self.assertRegex(report.explain(now, before, True), r"\+30  new\n +-1100  functions that got cheaper")

    def test_functions_belong_to_modules(self):
        places = {
            "evenkeel::proxy::http::exchange::exchange::{{closure}}": "evenkeel::proxy::http",
            "evenkeel::telemetry::cells::Cells::record": "evenkeel::telemetry",
            "<tokio::net::tcp::TcpStream as tokio::io::AsyncRead>::poll_read": "tokio",
            "__memcpy_avx_unaligned_erms": "not Rust",
        }
        for name, place in places.items():
            self.assertEqual(report.place(name), place)


class Kept(unittest.TestCase):
    def test_blessed_figures_are_read_again_and_budgets_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "budgets.toml"
            figures = kept.Figures(file, BUDGETS, "x86_64")
            measured = {"recv": 1.0, "close": 1.0}
            figures.bless("a", report.rows("a", measured, figures), {})
            figures.write()
            figures = kept.read(file, "x86_64")
        self.assertEqual(figures.budget("a"), {"instructions": 10000, "recv": 2.0})
        # Instructions were not measured and stay; calls that are gone do not.
        expected = {"instructions": 9000, "all": 2.0, "recv": 1.0, "close": 1.0}
        self.assertEqual(figures.kept("a"), expected)


class Files(unittest.TestCase):
    def write(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name) / "file"
        file.write_text(text)
        return file

    def test_callgrind_costs_count_for_the_function_itself(self):
        file = self.write(
            "version: 1\npositions: line\nevents: Ir\n\n"
            "ob=(1) /bin/x\nfl=(1) a.rs\nfn=(1) x::a::h0123456789abcdef\n10 5\n+2 7\n"
            "cob=(2) /lib/c\ncfi=(2) b.rs\ncfn=(2) x::b\ncalls=3 20\n* 100\nfi=(2)\n* 1\n"
            "fn=(2)\n20 100\n\nfn=(1)\n-3 2\n\ntotals: 115\n"
        )
        self.assertEqual(instructions.read(file), {"x::a": 15, "x::b": 100})

    def test_strace_lines_are_grouped_and_only_threads_that_accept_count(self):
        worker = self.write(
            'accept4(5, {...}, [128 => 16], SOCK_CLOEXEC) = 7\naccept4(5, 0x7f, [128], 0) = -1 EAGAIN (...)\n'
            'recvfrom(7, "GET "..., 65536, 0, NULL, NULL) = 9\nread(7, "", 9) = 0\n'
            'writev(7, [...], 2) = 9\nwrite(14, "\\1\\0\\0\\0\\0\\0\\0\\0", 8) = 8\n'
            "--- SIGINT {si_signo=SIGINT} ---\n+++ exited with 0 +++\n"
        )
        other = self.write("write(1, \"log\"..., 3) = 3\n")
        expected = {"accept": 1, "accept_empty": 1, "recv": 2, "send": 1, "wake": 1}
        self.assertEqual(calls.count([worker, other]), expected)


if __name__ == "__main__":
    unittest.main()
