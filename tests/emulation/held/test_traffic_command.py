"""`ofan traffic start`: sizes as in every other command."""

import pytest
from click.testing import CliRunner

import ofan
from emulation.held import cli
from emulation.held.messages import Request, StartTraffic


@pytest.mark.parametrize(("text", "size"), [("1MiB", 1 << 20), ("4096", 4096), (None, None)])
def test_a_size_has_a_unit(
    text: str | None, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request[str]] = []

    def ask(request: Request[str]) -> str:
        asked.append(request)
        return ""

    monkeypatch.setattr(cli, "ask", ask)
    options = [] if text is None else ["--message-bytes", text]
    assert CliRunner().invoke(ofan.cli, ["traffic", "start", *options]).exit_code == 0
    assert asked == [StartTraffic(size, False)]


@pytest.mark.parametrize("text", ["0", "1Mob", "-1", "0.5"])
def test_what_is_no_size_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["traffic", "start", "--message-bytes", text])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
