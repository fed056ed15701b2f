"""Tests what the patches beside it change, all but pauses.patch, on Patroni as it is installed: its own client of Kubernetes
speaks HTTP to a server that keeps one ConfigMap the way an API server does.

    python3 -m unittest test_lock.py
"""
import http.server
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import psutil
from psutil import TimeoutExpired

# Before patroni.ha, which it imports in turn.
from patroni.postgresql import Postgresql  # isort: skip
from patroni.api import RestApiServer
from patroni.postgresql.config import ConfigHandler, ConfigWriter
from patroni.postgresql.postmaster import PostmasterProcess
from patroni.postgresql.rewind import REWIND_STATUS, Rewind
from patroni.dcs import get_dcs
from patroni.exceptions import DCSError
from patroni.ha import Failsafe, Ha

OWN, OTHER = "db-0", "db-1"

# What Patroni logs of a server that goes away when a test ends.
logging.disable(logging.CRITICAL)


class APIServer(http.server.ThreadingHTTPServer):
    """Keeps the leader lock, and refuses a write of another version than the newest."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.RLock()
        self.version, self.annotations = 1, {}
        self.closing = threading.Event()
        self.refuse_reads, self.after_read = 0, None
        self.busy, self.asked_for, self.asked_at = 0, None, 0
        self.held, self.pods = {}, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def write(self, **annotations):
        with self.lock:
            self.version += 1
            self.annotations.update(annotations)
            self.annotations = {k: v for k, v in self.annotations.items() if v is not None}

    def object(self):
        return {"kind": "ConfigMap", "metadata": {"name": "db-leader", "resourceVersion": str(self.version), "annotations": dict(self.annotations)}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if "watch=" in query:
            # Nothing is reported: the node's cache is as old as it was.
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.server.closing.wait()
            self.close_connection = True
            return
        if path.rsplit("/", 1)[1] in self.server.held:
            self.server.held[path.rsplit("/", 1)[1]].wait(10)
        with self.server.lock:
            if path.endswith("/pods"):
                return self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": self.server.pods})
            if path.endswith("/configmaps"):
                return self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": [self.server.object()]})
            if self.busy("GET"):
                return
            if self.server.refuse_reads:
                return self.answer(self.server.refuse_reads, {})
            self.answer(200, self.server.object())
            if self.server.after_read:
                self.server.after_read()

    def busy(self, what):
        """Say whether this request is refused for a while, as the first ones of its kind in a row are."""
        if self.server.asked_for != what:
            self.server.asked_for, self.server.asked_at = what, time.monotonic()
        if time.monotonic() - self.server.asked_at >= self.server.busy:
            self.server.asked_for = None
            return False
        self.answer(503, {})
        return True

    def do_PATCH(self):
        meta = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["metadata"]
        with self.server.lock:
            if self.busy("PATCH"):
                return
            if meta["resourceVersion"] != str(self.server.version):
                return self.answer(409, {})
            self.server.write(**meta["annotations"])
            self.answer(200, self.server.object())

    def log_message(self, *args):
        pass


class Node(unittest.TestCase):
    """One that reads a lock from an API server."""

    def start(self, holder):
        self.server = APIServer()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.closing.set)
        self.server.write(leader=holder, ttl="20", renewTime="before", acquireTime="first", transitions="3")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            json.dump({"current-context": "test", "contexts": [{"name": "test", "context": {"user": "test", "cluster": "test"}}],
                       "clusters": [{"name": "test", "cluster": {"server": "http://127.0.0.1:%d" % self.server.server_port}}],
                       "users": [{"name": "test", "user": {"token": "none"}}]}, config)
            config.flush()
            with mock.patch("patroni.dcs.kubernetes.KUBE_CONFIG_DEFAULT_LOCATION", config.name):
                # A retry_timeout of a second leaves no time after the first answer: what the lock's newest holder
                # is has to be read all the same.
                self.dcs = get_dcs({"ttl": 20, "loop_wait": 5, "retry_timeout": 1, "name": OWN, "scope": "db",
                                    "kubernetes": {"namespace": "test", "labels": {"app": "db"}, "context": "test"}})
        self.dcs.get_cluster()
        self.assertEqual(holder, self.dcs._leader_observed_record.get("leader"))


class LockTest(Node):
    """A primary whose lock has run out, as it last read it, asks for it again."""

    def setUp(self):
        self.start(OWN)

    def holder(self):
        return self.server.annotations["leader"]

    def test_taken_by_another(self):
        self.server.write(leader=OTHER, renewTime="now", acquireTime="now", transitions="4")
        self.assertFalse(self.dcs.attempt_to_acquire_leader(), "a lock that another node has taken is lost")
        self.assertEqual(OTHER, self.holder())

    def test_released(self):
        self.server.write(leader=None)
        self.assertFalse(self.dcs.attempt_to_acquire_leader(), "a lock that was released may have been held since")

    def test_own_late_update(self):
        self.server.write(renewTime="late")
        self.assertTrue(self.dcs.attempt_to_acquire_leader(), "an own update that came late does not lose the lock")
        self.assertEqual(OWN, self.holder())
        self.assertNotEqual("late", self.server.annotations["renewTime"], "the lock is renewed")
        self.assertEqual(("first", "3"), (self.server.annotations["acquireTime"], self.server.annotations["transitions"]))

    def test_taken_after_own_late_update(self):
        self.server.write(renewTime="late")
        self.server.after_read = lambda: self.server.write(leader=OTHER)
        self.assertFalse(self.dcs.attempt_to_acquire_leader(), "a lock that is taken between reading and renewing it is lost")
        self.assertEqual(OTHER, self.holder())

    def ask(self, retry_timeout, expires):
        """Ask for a lock that an own late update has changed, while each of the three requests that it takes is
        refused for more than half a second. Return whether it is held, and how long that took."""
        self.server.write(renewTime="late")
        self.server.busy = 0.6
        self.dcs.set_retry_timeout(retry_timeout)
        self.dcs.leader_expiry = expires and time.time() + expires
        start = time.monotonic()
        # Patroni tries again after 0.1, 0.3, 0.7 and 1.5 s.
        with mock.patch("patroni.utils.random.randint", return_value=0):
            try:
                held = self.dcs.attempt_to_acquire_leader()
            except DCSError:
                held = False
        return held, time.monotonic() - start

    def test_one_time_limit(self):
        held, took = self.ask(1, None)
        self.assertFalse(held, "the requests have one time limit, and not each its own")
        self.assertLess(took, 1.5)

    def test_time_limit_after_the_lock_ran_out(self):
        held, took = self.ask(5, -10)
        self.assertFalse(held, "a primary that may not lead any more does not go on for another retry_timeout")
        self.assertLess(took, 1.5)

    def test_time_limit_while_others_agree(self):
        held, _ = self.ask(5, 15)
        self.assertTrue(held, "a primary that all others have let go on in failsafe mode has retry_timeout")

    def test_unreadable(self):
        self.server.write(leader=OTHER)
        self.server.refuse_reads = 403
        self.assertFalse(self.dcs.attempt_to_acquire_leader(), "a lock whose newest holder is not known is lost")


class DecidedTest(Node):
    """A standby has found the lock free, and asks for it once it has asked the other nodes how far they are. Meanwhile
    another one may have taken it, and a request to the REST API, which has a thread of its own, may have read that."""

    def setUp(self):
        self.start(None)

    def elsewhere(self):
        """Read the cluster as GET /cluster does, with what has changed."""
        self.dcs.event.clear()
        self.dcs._kinds.kill_stream()
        self.assertTrue(self.dcs.event.wait(5))
        names = []
        reader = threading.Thread(target=lambda: names.append(self.dcs.get_cluster().leader.name))
        reader.start()
        reader.join()
        self.assertEqual([OTHER], names)

    def test_free(self):
        self.assertTrue(self.dcs.attempt_to_acquire_leader())
        self.assertEqual(OWN, self.server.annotations["leader"])

    def test_taken_and_read_by_another_thread(self):
        self.server.write(leader=OTHER, renewTime="now", acquireTime="now", transitions="4")
        self.elsewhere()
        self.assertFalse(self.dcs.attempt_to_acquire_leader(), "a lock that another node has taken is not free because the REST API has read it")
        self.assertEqual(OTHER, self.server.annotations["leader"])

    def test_time_comes_first(self):
        times = []

        class Watched(type(self.dcs)):
            def __setattr__(self, name, value):
                if name == "_leader_observed_record":
                    times.append(self._leader_observed_time)
                super().__setattr__(name, value)

        self.server.write(leader=OTHER, renewTime="now", acquireTime="now", transitions="4")
        self.dcs._leader_observed_time = 1
        self.dcs.__class__ = Watched
        self.elsewhere()
        self.assertEqual(1, len(times))
        self.assertGreater(times[0], 1, "a lock that was just written looks as if it had run out")

    def test_next_turn(self):
        self.server.write(leader=OTHER, renewTime="now", acquireTime="now", transitions="4")
        self.elsewhere()
        self.dcs.event.clear()
        self.server.write(leader=None)
        self.dcs._kinds.kill_stream()
        self.assertTrue(self.dcs.event.wait(5))
        self.dcs.get_cluster()
        self.assertTrue(self.dcs.attempt_to_acquire_leader(), "a lock that is free at the next turn is taken")
        self.assertEqual("5", self.server.annotations["transitions"])


class WakeupTest(Node):
    """A standby asks for a lock that another one has taken just before."""

    def setUp(self):
        self.start(None)

    def test_taken_by_another(self):
        self.dcs.event.clear()
        self.server.write(leader=OTHER)
        self.assertFalse(self.dcs.attempt_to_acquire_leader())
        self.assertTrue(self.dcs.event.wait(5), "it takes its turn once it has read who leads, and does not wait for the next one")
        self.assertEqual(OTHER, self.dcs.get_cluster().leader.name)

    def test_nothing_new(self):
        self.dcs.event.clear()
        self.server.write(leader=None)
        self.dcs._kinds.kill_stream()
        self.assertFalse(self.dcs.event.wait(0.5), "a lock that is read again as it was does not wake the HA loop")


class ListedTest(Node):
    """A node's watches have ended, and both its HA loop and a request to the REST API wait for what it lists anew."""

    def setUp(self):
        self.start(OTHER)
        self.dcs.set_retry_timeout(10)

    def until(self, what, condition):
        for _ in range(500):
            if condition():
                return
            time.sleep(0.01)
        self.fail(what)

    def wait_for_lists(self):
        """Begin to read the cluster in a thread, which waits."""
        before = len(self.dcs._condition._waiters)
        reader = threading.Thread(target=self.dcs.get_cluster, daemon=True)
        reader.start()
        self.until("it does not wait", lambda: len(self.dcs._condition._waiters) > before)
        return reader

    def test_all_go_on(self):
        caches = {"pods": self.dcs._pods, "configmaps": self.dcs._kinds}
        self.server.held = {name: threading.Event() for name in caches}
        for cache in caches.values():
            cache.kill_stream()
        self.until("the watches do not end", lambda: not any(cache.is_ready() for cache in caches.values()))
        readers = [self.wait_for_lists(), self.wait_for_lists()]
        self.server.held["pods"].set()
        self.until("pods are not listed", self.dcs._pods.is_ready)
        # Who was woken by the first list waits again, behind the other one.
        time.sleep(0.2)
        self.server.held["configmaps"].set()
        self.until("ConfigMaps are not listed", self.dcs._kinds.is_ready)
        for reader in readers:
            reader.join(2)
        self.assertEqual([False, False], [reader.is_alive() for reader in readers], "one waits on though all is listed")


class MembersTest(Node):
    """The primary keeps the list of the members that it asks in failsafe mode, and its HA loop writes it."""

    def setUp(self):
        self.versions = 0

    def pod(self, address, position=0, name=OTHER):
        """A member's pod, as one that has no address yet if that is None."""
        self.versions += 1
        status = address and {"status": json.dumps({"api_url": "https://%s:8008/patroni" % address, "xlog_location": position})}
        return {"kind": "Pod", "metadata": {"name": name, "resourceVersion": str(self.versions), "annotations": status or {}, "labels": {}}}

    def wakes_up(self, event, pod):
        self.dcs.event.clear()
        self.dcs._pods._process_event({"type": event, "object": pod})
        return self.dcs.event.is_set()

    def test_primary(self):
        self.start(OWN)
        self.assertFalse(self.wakes_up("ADDED", self.pod(None)), "a pod without an address is not asked")
        self.assertTrue(self.wakes_up("MODIFIED", self.pod("10.0.0.2")), "a member has started")
        self.assertFalse(self.wakes_up("MODIFIED", self.pod("10.0.0.2", 7)), "its position is not in the list")
        self.assertTrue(self.wakes_up("MODIFIED", self.pod("10.0.0.3")), "a member has another address")
        self.assertTrue(self.wakes_up("DELETED", self.pod("10.0.0.3")), "a member is gone")
        self.assertFalse(self.wakes_up("DELETED", self.pod("10.0.0.3")), "it was gone before")

    def test_own_pod(self):
        self.start(OWN)
        self.wakes_up("ADDED", self.pod("10.0.0.1", name=OWN))
        self.assertFalse(self.wakes_up("DELETED", self.pod("10.0.0.1", name=OWN)), "a primary whose pod is deleted ends soon, and does not renew the lock meanwhile")

    def test_standby(self):
        self.start(OTHER)
        self.assertFalse(self.wakes_up("MODIFIED", self.pod("10.0.0.2")), "only the primary writes the list")

    def test_listed_anew(self):
        self.start(OWN)
        for pods, wakes in ([self.pod("10.0.0.2")], True), ([self.pod("10.0.0.2", 7)], False), ([], True):
            self.server.pods = pods
            self.dcs.event.clear()
            self.dcs._pods.kill_stream()
            self.assertEqual(wakes, self.dcs.event.wait(5 if wakes else 0.5), "pods that came, moved or went while nothing was watched")


class OutdatedTest(Node):
    """A standby knows of a primary by its lock, and by what that asked without one."""

    def setUp(self):
        self.start(OTHER)
        self.ha = Ha.__new__(Ha)
        self.ha.dcs, self.ha._failsafe, self.ha.old_cluster = self.dcs, Failsafe(self.dcs), None
        self.ha.state_handler, self.ha._last_wal_lsn = mock.Mock(state="running", role="replica"), 7
        self.ha.state_handler.name = OWN
        self.ha.is_leader, self.ha.set_is_leader, self.ha.is_failsafe_mode = lambda: False, lambda value: None, lambda: True

    def ask(self):
        self.ha.update_failsafe({"name": OTHER, "conn_url": "postgres://10.0.0.2/", "api_url": "http://10.0.0.2:8008/patroni"})

    def reload(self, seconds):
        """Load the cluster anew, as many seconds later."""
        self.dcs._leader_observed_time -= seconds
        self.ha._failsafe._last_update -= seconds
        # The cache lists what there is once its watch has ended.
        newest = str(self.server.version)
        self.dcs._kinds.kill_stream()
        for _ in range(500):
            kind = self.dcs._kinds.get("db-leader")
            if kind and kind.metadata.resource_version == newest:
                break
            time.sleep(0.01)
        self.ha.load_cluster_from_dcs()
        return self.ha.cluster.leader and self.ha.cluster.leader.name

    def test_asked_after_the_lock_was_written(self):
        self.dcs._leader_observed_time -= 25
        self.ask()
        self.assertEqual(OTHER, self.reload(0), "one that has asked leads, though its lock has run out")
        self.assertEqual(OTHER, self.reload(19))
        self.assertFalse(self.reload(2), "it leads no longer than a lock lives")

    def test_released_after_it_asked(self):
        self.dcs._leader_observed_time -= 25
        self.ask()
        self.server.write(leader=None)
        self.assertFalse(self.reload(1), "a lock that was released since is free")

    def test_renewed_after_it_asked(self):
        self.dcs._leader_observed_time -= 25
        self.ask()
        self.server.write(renewTime="since")
        self.assertEqual(OTHER, self.reload(1), "a lock that was renewed since is held")
        self.server.write(leader=None)
        self.assertFalse(self.reload(1), "and free once it is released")


class FailsafeTest(unittest.TestCase):
    """A node is asked by a primary that cannot reach the API server whether it may go on."""

    def ask(self, leads, state, role):
        ha = Ha.__new__(Ha)
        ha.state_handler, ha._failsafe, ha._last_wal_lsn = mock.Mock(state=state, role=role), mock.Mock(), 7
        ha.is_leader = lambda: leads
        answer = ha.update_failsafe({"name": OTHER})
        self.assertEqual(answer == 7, ha._failsafe.update.called)
        return answer

    def test_update_failsafe(self):
        refused = "Running as a leader"
        for reason, leads, state, role, want in (
                ("A standby lets it go on", False, "running", "replica", 7),
                ("A primary does not", False, "running", "primary", refused),
                ("One that has just taken the lock does not", True, "running", "replica", refused),
                ("One that is being promoted does not", True, "running", "promoted", refused)):
            with self.subTest(reason):
                self.assertEqual(want, self.ask(leads, state, role))


class PromotionTest(unittest.TestCase):
    """A standby is promoted, and the HA loop publishes its timeline once that is known to have ended."""

    def test_noticed_at_once(self):
        states = iter(["in archive recovery", "in archive recovery", "in production"])
        server = mock.Mock(controldata=lambda: {"Database cluster state": next(states)})
        slept = []
        with mock.patch("patroni.utils.time.sleep", slept.append):
            self.assertTrue(Postgresql._wait_promote(server, 5))
        server.set_role.assert_called_with("primary")
        self.assertLessEqual(sum(slept), 0.5, "the timeline is published long after writes are taken")


class CaughtUpTest(unittest.TestCase):
    """A primary is shut down, and its archiver goes on for long: the lock is released once a replica has all."""

    def stop(self, on_shutdown, stop_timeout=None):
        self.postmaster = mock.Mock(signal_stop=lambda *args: None)
        self.postmaster.wait.side_effect = [TimeoutExpired(1)] * 20 + [None] * 5
        server = mock.Mock(is_running=lambda: self.postmaster, controldata=lambda: {"Database cluster state": "shut down"})
        server._checkpoint_locations_from_controldata.return_value = (160, 40)
        # What was there before the patch asked once, in the place where this asks again.
        server._ask_until_released = getattr(Postgresql, "_ask_until_released", None)
        self.assertEqual((True, True), Postgresql._do_stop(server, "fast", False, False, None, on_shutdown, None, stop_timeout))
        return server

    def primary(self, **has):
        ha = mock.Mock(_async_executor=mock.MagicMock(), _join_aborted=False, **has)
        ha.is_paused.return_value = False
        ha.is_leader.return_value = True
        ha.state_handler.is_running.return_value = False
        ha.state_handler.stop = lambda *args, **kwargs: self.stop(kwargs["on_shutdown"])
        ha.while_not_sync_standby = lambda stop: stop()
        ha._delete_leader = lambda lsn: Ha._delete_leader(ha, lsn)
        ha.release_leader_key_voluntarily = lambda lsn: Ha.release_leader_key_voluntarily(ha, lsn)
        return ha

    def released(self, ha, *answers):
        """The lock is released by a replica that has the shutdown checkpoint, and again where that failed."""
        self.assertEqual([mock.call(ha.cluster.leader, 40)] * len(answers), ha.dcs.delete_leader.mock_calls)

    def test_caught_up_later(self):
        for end in (lambda ha: Ha.demote(ha, "graceful"), Ha.shutdown):
            for answers in ([True], [False, True]):
                ha = self.primary()
                ha.is_failover_possible.side_effect = [False, False] + [True] * len(answers)
                ha.dcs.delete_leader.side_effect = answers
                with self.subTest(answers), mock.patch("patroni.ha.time.sleep"):
                    end(ha)
                    self.released(ha, *answers)

    def test_lock_lost(self):
        ha = self.primary()
        ha.is_leader.side_effect = [True, True] + [False] * 9
        asked = []
        ha.state_handler.stop = lambda *args, **kwargs: self.stop(lambda *at: asked.append(at) or kwargs["on_shutdown"](*at))
        with mock.patch("patroni.ha.time.sleep"):
            Ha.shutdown(ha)
        self.assertEqual(1, len(asked), "there is nothing to release any more")
        ha.dcs.delete_leader.assert_not_called()

    def test_stops_meanwhile(self):
        asked = []
        def on_shutdown(*at):
            asked.append(at)
            self.postmaster.wait.side_effect = None
        self.stop(on_shutdown)
        self.assertEqual(1, len(asked), "a server that has stopped is not asked for")

    def test_deadline(self):
        with mock.patch("patroni.postgresql.time.monotonic", mock.Mock(side_effect=[0, 1, 2, 3, 4])):
            server = self.stop(lambda *at: False, stop_timeout=3)
        self.assertEqual(mock.call(timeout=3), self.postmaster.wait.mock_calls[-1], "it has the time that it had before")
        server.terminate_postmaster.assert_called_once_with(self.postmaster, "fast", 3)


def killed(conn, cmdline, env):
    """Starts a process as patroni.postgresql.postmaster.pg_ctl_start does, and is killed."""
    os.setsid()
    process = subprocess.Popen(["sleep", "60"], close_fds=True)
    with open(cmdline[0], "w") as f:
        f.write(str(process.pid))
    os.kill(os.getpid(), signal.SIGKILL)


class StartTest(unittest.TestCase):
    """The process that starts PostgreSQL gets the number that a postmaster.pid was left behind with."""

    def folder(self, pid):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "postmaster.pid"), "w") as f:
            f.write("%d\n%s\n%d\n5432\n/tmp\n*\n" % (pid, folder.name, time.time() - 600))
        return folder.name

    def test_helper_is_killed(self):
        ended = threading.Thread(target=PostmasterProcess.start, args=("/bin/true", self.folder(os.getpid()), "/dev/null", []), daemon=True)
        ended.start()
        killed = False
        until = time.monotonic() + 10
        while not killed and time.monotonic() < until:
            for child in psutil.Process().children():
                if any("spawn_main" in word for word in child.cmdline()):
                    child.send_signal(signal.SIGHUP)
                    killed = True
        self.assertTrue(killed, "no process was started")
        ended.join(5)
        self.assertFalse(ended.is_alive(), "the start of PostgreSQL does not end: its process was killed")

    def test_started_is_stopped(self):
        folder = self.folder(os.getpid())
        file = os.path.join(folder, "pid")
        with mock.patch("patroni.postgresql.postmaster.pg_ctl_start", killed):
            result = []
            start = threading.Thread(target=lambda: result.append(PostmasterProcess.start(file, folder, "/dev/null", [])), daemon=True)
            start.start()
            start.join(10)
        self.assertEqual([None], result)
        with open(file) as f:
            pid = int(f.read())
        self.addCleanup(lambda: psutil.pid_exists(pid) and os.kill(pid, signal.SIGKILL))
        gone = time.monotonic() + 5
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < gone:
            time.sleep(0.05)
        self.assertFalse(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE,
                         "a server that nothing knows of runs on")

    def test_reload_spares_others(self):
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        folder = self.folder(other.pid)
        server = mock.Mock(_data_dir=folder)
        server.pg_ctl = lambda *args: os.kill(PostmasterProcess._from_pidfile(folder).pid, signal.SIGHUP) is None
        known = server._postmaster_proc
        self.assertFalse(Postgresql.reload(server), "a server that does not run was reloaded")
        self.assertIsNone(other.poll(), "another process was signaled in the stead of PostgreSQL")
        self.assertIs(known, server._postmaster_proc, "a start that goes on loses its server")


class LoadedTest(unittest.TestCase):
    """What PostgreSQL says of its configuration may be of before it has loaded what was written."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = [os.path.join(folder.name, name) for name in ("postgresql.conf", "postgresql.auto.conf")]
        self.config = ConfigHandler.__new__(ConfigHandler)
        self.config._postgresql_conf, self.config._auto_conf = self.files
        self.config._postgresql_conf_mtime = self.config._auto_conf_mtime = self.config._postmaster_ctime = None
        self.config._passfile, self.config._passfile_mtime = None, False
        self.config._postgresql = mock.Mock(major_version=170000)
        self.config._postgresql.is_starting.return_value = False
        self.config._postgresql.is_running.return_value.create_time.return_value = 1
        self.config._postgresql.query = self.query
        self.asked = 0
        self.write("host=a")
        self.load()

    def write(self, conninfo):
        self.written = conninfo
        for file in self.files:
            with open(file, "w") as f:
                f.write(conninfo)

    def load(self):
        self.loaded, self.loaded_at = self.written, time.time()

    def query(self, sql, *params):
        if "pg_conf_load_time" in sql:
            return [(self.loaded_at,)]
        self.asked += 1
        return [("primary_conninfo", self.loaded, None, "string", "sighup", None)]

    def read(self):
        with mock.patch.object(ConfigHandler, "_recovery_parameters_to_compare", {"primary_conninfo"}):
            values, updated = self.config._read_recovery_params()
        return values and values["primary_conninfo"][0], updated

    def test_read_before_it_is_loaded(self):
        self.assertEqual(("host=a", True), self.read())
        time.sleep(0.02)
        self.write("")
        self.read()
        self.load()
        self.assertEqual(("", True), self.read(), "a standby that follows no server counts as one that does, until something else is written")

    def test_read_once(self):
        self.assertEqual(("host=a", True), self.read())
        self.assertEqual((None, False), self.read())
        self.assertEqual(1, self.asked)


class CopiedTest(unittest.TestCase):
    """A server does not run, and its control file says that it was in production."""

    def recovers(self, *files):
        with tempfile.TemporaryDirectory() as folder:
            for name in files:
                with open(os.path.join(folder, name), "w"):
                    pass
            ha = Ha.__new__(Ha)
            ha.state_handler, ha.cluster, ha._rewind, ha._async_executor = mock.Mock(data_dir=folder), mock.Mock(), mock.Mock(can_rewind=True), mock.Mock()
            ha._crash_recovery_started = 0
            ha._async_executor.try_run_async.return_value = None
            return bool(ha._handle_crash_recovery())

    def test_crashed(self):
        self.assertTrue(self.recovers("PG_VERSION", "backup_label.old"))

    def test_copy_that_never_started(self):
        self.assertFalse(self.recovers("PG_VERSION", "backup_label"), "it writes a log of its own, and never follows its primary")


class DivergedTest(unittest.TestCase):
    """A standby was found not to need a rewind, and is ahead of where the timeline of its leader begins."""

    def setUp(self):
        self.rewind = Rewind.__new__(Rewind)
        self.rewind._state, self.rewind._checkpoint_task_lock, self.rewind._postgresql = REWIND_STATUS.NOT_NEED, threading.Lock(), mock.Mock()
        self.rewind._postgresql.name = OWN
        self.ha = Ha.__new__(Ha)
        self.ha._rewind, self.ha.cluster, self.ha._async_executor, self.ha.state_handler = self.rewind, mock.Mock(), mock.Mock(), mock.Mock()
        self.ha.dcs, self.ha.cluster.leader.name = mock.Mock(ttl=20), OTHER
        self.ha._async_executor.try_run_async.return_value = None
        self.ha.state_handler.is_primary.return_value = self.ha.state_handler.is_starting.return_value = False
        self.ha.state_handler.config.check_recovery_conf.return_value = (False, False)
        self.ha._get_node_to_follow = mock.Mock(return_value=self.ha.cluster.leader)
        self.ha.is_paused = self.ha.is_standby_cluster = mock.Mock(return_value=False)
        self.checked = 0

    def follow(self, at, replication_state=None, answers=True):
        def check(rewind, leader):
            self.checked += 1
            if answers:
                rewind._state = REWIND_STATUS.NEED

        self.ha.state_handler.replication_state.return_value = replication_state
        with mock.patch.object(Rewind, "can_rewind", True), mock.patch.object(Rewind, "_check_timeline_and_lsn", check), \
                mock.patch("patroni.ha.time.monotonic", return_value=at):
            return self.ha.follow("demoted", "no action", refresh=False)

    def test_receives_nothing(self):
        for at in (100, 105, 110, 115, 120):
            self.assertEqual("no action", self.follow(at), "a leader may be frozen for as long as it has the lock")
        self.assertIn("running pg_rewind", self.follow(121, "in archive recovery"), "it receives nothing for ever")

    def test_streams_meanwhile(self):
        for at, state in ((100, None), (110, "streaming"), (125, None), (130, None)):
            self.assertEqual("no action", self.follow(at, state))
        self.assertEqual(0, self.checked)

    def test_another_leader(self):
        self.follow(100)
        self.ha.cluster.leader.name = "db-2"
        for at in (119, 125, 130):
            self.assertEqual("no action", self.follow(at))
        self.assertEqual(0, self.checked, "the new leader has had no time to be followed")

    def test_led_meanwhile(self):
        for at in (100, 3700, 3705):
            self.assertEqual("no action", self.follow(at))
        self.assertEqual(0, self.checked, "it has not followed for all that time")

    def test_no_answer(self):
        for at in (100, 110, 121, 126, 131, 136):
            self.assertEqual("no action", self.follow(at, answers=False))
        self.assertEqual(1, self.checked, "a leader that does not answer holds each turn up")


class WrittenTest(unittest.TestCase):
    """PostgreSQL may read a configuration file at any time, and two threads may write it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = os.path.join(self.folder, "postgresql.conf")
        with ConfigWriter(self.file) as f:
            f.write_param("port", 1)

    def read(self):
        with open(self.file) as f:
            return [line for line in f.read().splitlines() if not line.startswith("#")]

    def test_read_while_it_is_written(self):
        with ConfigWriter(self.file) as f:
            f.write_param("port", 2)
            f._fd.flush()
            self.assertEqual(["port = '1'"], self.read())
        self.assertEqual(["port = '2'"], self.read())

    def test_two_writers(self):
        def write():
            with ConfigWriter(self.file) as f:
                f.write_param("port", 3)
        with ConfigWriter(self.file) as f:
            f.write_param("port", 2)
            f._fd.flush()
            other = threading.Thread(target=write)
            other.start()
            other.join()
            f.write_param("recovery_target_timeline", "latest")
        self.assertEqual(["port = '2'", "recovery_target_timeline = 'latest'"], self.read())

    def test_fails(self):
        with self.assertRaises(ValueError):
            with ConfigWriter(self.file) as f:
                f.write_param("port", 2)
                raise ValueError
        self.assertEqual(["port = '1'"], self.read())
        self.assertEqual(["postgresql.conf"], os.listdir(self.folder))


class CertificateTest(unittest.TestCase):
    """The REST API's certificate is replaced while the server runs, and no program can ask it to reload."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("one", "two", "three"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name, "-days", "2",
                            "-keyout", self.file(name + ".key"), "-out", self.file(name + ".crt")], check=True, stderr=subprocess.DEVNULL)
        self.mount("one")
        self.api = RestApiServer(mock.Mock(), {
            "listen": "127.0.0.1:0", "certfile": self.file("tls.crt"), "keyfile": self.file("tls.key"), "cafile": self.file("ca.crt"), "verify_client": "optional"})
        self.addCleanup(self.stop)
        self.api.start()

    def stop(self):
        self.api.shutdown()
        self.api.server_close()

    def file(self, name):
        return os.path.join(self.folder, name)

    def mount(self, certificate, key=None):
        for name, source in (("tls.crt", certificate + ".crt"), ("ca.crt", certificate + ".crt"), ("tls.key", (key or certificate) + ".key")):
            with open(self.file(source)) as f, open(self.file(name), "w") as to:
                to.write(f.read())

    def shows(self, client=None):
        """Name of the certificate that a connection sees, of a client with a certificate of its own."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.file("one.crt"))
        context.load_verify_locations(self.file("two.crt"))
        context.load_verify_locations(self.file("three.crt"))
        if client:
            context.load_cert_chain(self.file(client + ".crt"), self.file(client + ".key"))
        with socket.create_connection(self.api.server_address[:2], timeout=5) as plain, context.wrap_socket(plain) as connection:
            connection.sendall(b"OPTIONS / HTTP/1.0\r\n\r\n")
            connection.recv(1)
            return dict(part[0] for part in connection.getpeercert()["subject"])["commonName"]

    def test_renewed(self):
        self.assertEqual("one", self.shows())
        self.mount("two")
        self.api.refresh_certificate()
        self.assertEqual("two", self.shows(), "the certificate of before is shown until it has expired, and longer")

    def test_another_authority(self):
        self.mount("two")
        self.api.refresh_certificate()
        self.assertEqual("two", self.shows("two"), "a member with the new certificate is turned away")
        self.assertEqual("two", self.shows("one"), "one that does not have it yet is turned away")
        with self.assertRaises(OSError):
            self.shows("three")

    def test_no_pair(self):
        self.mount("two", "three")
        self.api.refresh_certificate()
        self.assertEqual("one", self.shows(), "what is no pair ends what served before")
        self.mount("three")
        self.api.refresh_certificate()
        self.assertEqual("three", self.shows(), "what was mended is not read again")

    def test_gone(self):
        os.remove(self.file("tls.crt"))
        self.api.refresh_certificate()
        self.assertEqual("one", self.shows())


if __name__ == "__main__":
    unittest.main()
