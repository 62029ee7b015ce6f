"""The same session with p4runtime-shell, at the address given, in a folder with both pipelines."""

import contextlib
import io
import json
import sys

import p4runtime_sh.shell as sh

FRAME = bytes.fromhex("0a0b0c0d0e0f0102030405060806") + bytes(46)
address = sys.argv[1]
seen = {}


def setup(program, election):
    config = sh.FwdPipeConfig(f"{program}.txtpb", f"{program}.json")
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, election), config=config)


with contextlib.redirect_stdout(io.StringIO()):
    setup("ofan", 1)
    entry = sh.TableEntry("schedule")(action="take_port")
    entry.match["schedule"], entry.match["slot"], entry.action["port"] = "3", "1", "5"
    entry.insert()
    seen["read"] = len(list(sh.TableEntry("schedule").read()))
    entry.delete()
    seen["after_delete"] = len(list(sh.TableEntry("schedule").read()))
    sh.teardown()
    setup("counted", 2)
    packets = sh.PacketIn()
    out = sh.PacketOut(FRAME)
    out.metadata["egress_port"], out.metadata["padding"] = "510", "0"
    out.send()
    packets.sniff(lambda message: seen.update(packet_in=message.packet.payload.hex()), timeout=2)
    counter = sh.CounterEntry("seen")
    counter.index = 1
    seen["counted"] = next(iter(counter.read())).packet_count
    sh.teardown()
sys.stdout.write(json.dumps(seen) + "\n")
