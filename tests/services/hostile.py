"""Addresses that lead where nobody may be sent: every private place, in every way that it can be written."""

import ipaddress
from collections.abc import Iterator

PRIVATE = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "169.254.169.254"),
    *("169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "0.0.0.0", "192.0.0.192", "198.18.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1"),
)
PRIVATE_6 = (
    *("::1", "::", "fe80::1", "fec0::1", "fd00:ec2::254", "fc00::1", "ff02::1", "100::1", "2001:db8::1", "3fff::1"),
    *("2001::1", "2001:10::1", "64:ff9b:1::1", "::ffff:0:127.0.0.1", "5f00::1"),
)
#: Names, and what they lead to.
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.localdomain": ["127.0.0.1"],
    "ip6-localhost": ["::1"],
    "metadata.google.internal": ["169.254.169.254"],
    "metadata": ["169.254.169.254"],
    "instance-data.ec2.internal": ["169.254.169.254"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "kubernetes.default.svc": ["10.96.0.1"],
    "printer.local": ["192.168.1.20"],
    "mixed.example": ["93.184.216.34", "10.0.0.1"],
    "mixed6.example": ["2606:2800:220:1::1", "::1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "translated.example": ["64:ff9b::a00:1"],
    "empty.example": [],
}
_WRITTEN_OTHERWISE = (
    *(
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "ftp://a.example/",
        "gopher://a.example:70/_x",
        "dict://x:1/",
    ),
    *("ldap://a.example/", "jar:http://a.example!/", "data:text/html,hi", "javascript:alert(1)", "ws://a.example/", ""),
    *(
        "//a.example/",
        "http:a.example",
        "http:/a.example",
        "http:///a",
        "http://",
        "https://:443/",
        "a.example",
        "/etc",
    ),
    *(
        "http://user@a.example/",
        "http://user:pw@a.example/",
        "http://a.example@127.0.0.1/",
        "http://127.0.0.1#@a.example/",
    ),
    *(
        "http://a.example:22/",
        "http://a.example:8080/",
        "https://a.example:6379/",
        "http://a.example:0/",
        "http://a.example:x/",
    ),
    *("http://a.example:65536/", "http://a.example:-80/", "http://a.example\\@127.0.0.1/", "http:\\\\127.0.0.1\\"),
    *(
        "http://127.0.0.1\t/",
        "http://127.0.0.1\n.a.example/",
        "http://a.exa mple/",
        "http://a.example\x00/",
        "http://[::1/",
    ),
    *(
        "http://[127.0.0.1]/",
        "http://[v1.x]/",
        "http://[::1%25lo]/",
        "http://[fe80::1%25eth0]/",
        "http://1/",
        "http://a..b/",
    ),
    *(
        "http://0/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0x7f.1/",
        "http://0177.1/",
        "http://017700000001/",
        "http://-a/",
    ),
    *(
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://１２７.0.0.1/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        "http://127.0.0.1%2f@a.example/",
    ),
    *("http://0x7f000001/", "http://00000177.0.0.1/", "http://127.0.0.1.:80/", "http://" + "a" * 64 + ".example/"),
    *(
        "http://a.example/" + "x" * 2_000,
        "http://" + "a." * 150 + "example/",
        "unix:///run/docker.sock",
        "http+unix://x/",
    ),
)


def urls() -> Iterator[str]:
    """All of them, some four hundred."""
    for address in PRIVATE:
        for host in _spelt(ipaddress.IPv4Address(address)):
            yield f"http://{host}/latest/meta-data"
    for address in PRIVATE_6:
        yield f"http://[{address}]/"
        yield f"https://[{address}]:443/"
    for name in NAMES:
        yield f"http://{name}/"
        yield f"https://{name.upper()}./x?y=http://a.example"
    yield from _WRITTEN_OTHERWISE


def _spelt(address: ipaddress.IPv4Address) -> Iterator[str]:
    a, b, c, d = address.packed
    number = int(address)
    yield from (str(address), f"{address}.", f"user@{address}", f"a.example@{address}")
    yield from (
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
    )
    yield from (f"{a}.{(b << 16) + (c << 8) + d}", f"{a}.{b}.{(c << 8) + d}", f"00{a}.{b}.{c}.{d}")
    yield from (
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]",
    )
