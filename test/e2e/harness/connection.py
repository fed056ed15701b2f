"""Connections to a host, by TLS where a name and an authority are told."""
import functools
import http.client
import socket
import ssl


@functools.lru_cache
def trust(ca):
    return ssl.create_default_context(cadata=ca)


def dial(ask):
    if not ask.get("tls"):
        return http.client.HTTPConnection(ask["host"], ask["port"], timeout=20)
    connection = http.client.HTTPSConnection(ask["tls"]["name"], ask["port"], timeout=20, context=trust(ask["tls"]["ca"]))
    # The name is whose certificate is wanted, and not where it is to be found.
    connection._create_connection = lambda _, *more: socket.create_connection((ask["host"], ask["port"]), *more)
    return connection


