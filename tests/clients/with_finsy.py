"""A session of finsy with a switch (argument: its address), in a folder with both pipelines.

Prints what it saw.
"""

import asyncio
import json
import sys
from pathlib import Path

import finsy as fy

FRAME = bytes.fromhex("0a0b0c0d0e0f0102030405060806") + bytes(46)


def options(program: str) -> fy.SwitchOptions:
    return fy.SwitchOptions(
        p4info=Path(f"{program}.txtpb"), p4blob=Path(f"{program}.json"), device_id=1
    )


async def session(address: str) -> dict[str, object]:
    seen: dict[str, object] = {}
    async with fy.Switch("switch", address, options("ofan")) as switch:
        entry = fy.P4TableEntry(
            "schedule",
            match=fy.P4TableMatch(schedule=3, slot=1),
            action=fy.P4TableAction("take_port", port=5),
        )
        await switch.insert([entry])
        seen["read"] = len([row async for row in switch.read(fy.P4TableEntry("schedule"))])
        await switch.delete([entry])
        seen["after_delete"] = len([row async for row in switch.read(fy.P4TableEntry("schedule"))])
    async with fy.Switch("switch", address, options("counted")) as switch:
        arriving = asyncio.ensure_future(anext(aiter(switch.read_packets())))
        await asyncio.sleep(0)  # the reader must be listening before the packet comes back
        await switch.write([fy.P4PacketOut(FRAME, egress_port=510, padding=0)])
        seen["packet_in"] = (await arriving).payload.hex()
        async for counter in switch.read(fy.P4CounterEntry("seen", index=1)):
            seen["counted"] = counter.packet_count
    return seen


sys.stdout.write(json.dumps(asyncio.run(asyncio.wait_for(session(sys.argv[1]), 30))) + "\n")
