"""Which peers the package believes, and which believe it: a real scheduler,
and peers that are none.
"""

import os
import shutil
import socket
import ssl
import threading
import unittest
from concurrent import futures
from pathlib import Path

import grpc
import troupe
from real_cluster import ClusterTest, RealCluster, run_troupe, temporary_folder
from troupe.trust import check_role, verify_scheduler


def setUpModule():
    global folder, real, address
    folder = temporary_folder()
    unittest.addModuleCleanup(folder.cleanup)
    real = RealCluster(folder.name)
    unittest.addModuleCleanup(real.down)
    address = troupe.connect(real.dir).connection().address


def files(role):
    return real.dir / "trust" / role


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


class TlsPeer:
    """Ends a handshake with a certificate of its own, and says nothing."""

    def __init__(self, certificates):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(
            certificates / "certificate.pem", certificates / "key.pem"
        )
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                plain, _ = self.server.accept()
                self.context.wrap_socket(plain, server_side=True).recv(1)
            except ssl.SSLError:
                pass
            except OSError:
                return


class Believed(ClusterTest):
    def test_by_the_folder_or_by_address_and_certificates(self):
        with troupe.connect(real.dir) as cluster:
            self.assertEqual(len(cluster.workers()), 2)
        with troupe.connect(address=address, certificates=files("client")) as cluster:
            self.assertEqual(len(cluster.workers()), 2)
        with troupe.connect(real.dir, address=address) as cluster:
            self.assertEqual(len(cluster.workers()), 2)


class NotBelieved(ClusterTest):
    def refused(self, words, kind=troupe.NotTrusted, **arguments):
        with self.assertRaisesRegex(kind, words):
            troupe.connect(**arguments).jobs()

    def test_a_certificate_of_another_authority(self):
        foreign = Path(folder.name) / "foreign"
        run_troupe(
            *("cluster", "certificate", "here", "--role", "client"),
            *("--dir", f"{folder.name}/other", "--out", str(foreign)),
        )
        self.refused("does not vouch for", address=address, certificates=foreign)
        # One that believes the scheduler, but which the scheduler does not.
        shutil.copy(files("client") / "authority.pem", foreign / "authority.pem")
        self.refused(
            f"refuses the certificate in {foreign}", address=address, certificates=foreign
        )

    def test_a_workers_certificate_as_a_clients(self):
        self.refused("is for a client", address=address, certificates=files("worker"))

    def test_no_certificates(self):
        self.refused("by which certificate", address=address)
        self.refused(
            "No such file.*troupe cluster certificate HOST --role client",
            address=address,
            certificates="/nowhere",
        )

    def test_a_key_that_everybody_may_read(self):
        open_key = Path(folder.name) / "open"
        shutil.copytree(files("client"), open_key)
        os.chmod(open_key / "key.pem", 0o644)
        self.refused(
            "is a secret that everybody on this machine may use",
            address=address,
            certificates=open_key,
        )

    def test_a_key_of_another_certificate(self):
        mixed = Path(folder.name) / "mixed"
        shutil.copytree(files("client"), mixed)
        shutil.copy(files("worker") / "key.pem", mixed / "key.pem")
        self.refused("is of no use", address=address, certificates=mixed)

    def test_a_peer_with_a_workers_certificate_as_a_scheduler(self):
        peer = TlsPeer(files("worker"))
        self.addCleanup(peer.server.close)
        # Troupe's own are for clients only; others' may be for both.
        self.refused(
            "unsuitable certificate purpose",
            address=peer.address,
            certificates=files("client"),
        )
        for names in ((), (("URI", "troupe:worker"), ("DNS", "troupe:scheduler"))):
            with self.assertRaisesRegex(troupe.NotTrusted, "is not a scheduler"):
                check_role("here:1", {"subjectAltName": names})
        check_role("here:1", {"subjectAltName": (("URI", "troupe:scheduler"),)})

    def test_a_peer_that_takes_the_schedulers_place_after_it_was_verified(self):
        scheduler = verify_scheduler(address, files("client"), 5)
        credentials = grpc.ssl_server_credentials(
            [
                (
                    (files("worker") / "key.pem").read_bytes(),
                    (files("worker") / "certificate.pem").read_bytes(),
                )
            ]
        )
        impostor = grpc.server(futures.ThreadPoolExecutor(1))
        port = impostor.add_secure_port("127.0.0.1:0", credentials)
        impostor.start()
        self.addCleanup(impostor.stop, None)
        channel = grpc.secure_channel(
            f"127.0.0.1:{port}",
            scheduler.credentials(files("client")),
            [("grpc.ssl_target_name_override", scheduler.name)],
        )
        self.addCleanup(channel.close)
        with self.assertRaises(grpc.RpcError) as caught:
            channel.unary_unary("/troupe.Scheduler/ListJobs")(b"", timeout=5)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertRegex(caught.exception.details(), "(?i)certificate.verify.failed")

    def test_a_peer_without_tls(self):
        server = grpc.server(futures.ThreadPoolExecutor(1))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        self.refused(
            "does not speak TLS|hung up during the TLS handshake",
            troupe.TroupeError,
            address=f"127.0.0.1:{port}",
            certificates=files("client"),
        )

    def test_a_scheduler_with_tls_is_not_asked_without(self):
        self.refused("is unavailable", troupe.Unavailable, address=address, insecure=True)

    def test_no_tls_to_another_machine(self):
        self.refused("insecure='anywhere'", address="192.0.2.1:4321", insecure=True)


class NotThere(ClusterTest):
    def refused(self, words, *arguments, **named):
        with self.assertRaisesRegex(troupe.ClusterNotFound, words):
            troupe.connect(*arguments, **named)

    def test_which_cluster(self):
        self.refused("which cluster")
        self.refused("there|No such file.*troupe up", Path(folder.name) / "nothing")
        for wrong in ("nowhere", "host:", ":4321", "host:0", "host:x", "host:65536"):
            self.refused("expected HOST:PORT", address=wrong)

    def test_nobody_listens(self):
        with self.assertRaisesRegex(troupe.Unavailable, "no scheduler answers at"):
            troupe.connect(address=free_address(), certificates=files("client"))

    def folder_that_says(self, text):
        made = Path(folder.name) / self.id()
        made.mkdir()
        (made / "endpoints.json").write_text(text)
        return made

    def test_a_file_that_says_nothing(self):
        self.refused("does not say where", self.folder_that_says("[]"))

    def test_a_scheduler_that_is_gone(self):
        said = (real.dir / "endpoints.json").read_text()
        # The same number, of a process that began at another time.
        gone = said.replace('"start_ticks": ', '"start_ticks": 1')
        self.assertNotEqual(gone, said)
        self.refused("is gone", self.folder_that_says(gone))

    def test_a_scheduler_on_another_host(self):
        said = '{"grpc": "127.0.0.1:4321", "host": "elsewhere", "boot": "another"}'
        self.refused("runs on elsewhere and is reached there only", self.folder_that_says(said))

    def test_a_folder_that_everybody_may_write(self):
        made = self.folder_that_says((real.dir / "endpoints.json").read_text())
        os.chmod(made, 0o777)
        with self.assertRaisesRegex(troupe.NotTrusted, "everybody may write"):
            troupe.connect(made)


if __name__ == "__main__":
    unittest.main()
