from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.component("torch")

from visenv.envs.mags.magnifier.magnify import open_magnifier
from visenv.envs.mags.magnifier.smfanet import VARIANTS, SMFANet
from visenv.envs.mags.magnifier.weights import load_smfanet
from visenv.errors import ConfigurationError

PARAMETERS = {
    ("SMFANet", 2): 185_628,
    ("SMFANet", 3): 190_503,
    ("SMFANet", 4): 197_328,
    ("SMFANet+", 2): 480_300,
    ("SMFANet+", 3): 486_795,
    ("SMFANet+", 4): 495_888,
}


def network(variant: str = "SMFANet", scale: int = 4) -> SMFANet:
    torch.manual_seed(0)
    return SMFANet(*VARIANTS[variant], scale).eval()


def saved(path: Path, model: Any) -> Path:
    torch.save({"params": model.state_dict()}, path)
    return path


def pattern() -> Any:
    """Return the 16×16 image ((7x + 13y + 29c) mod 256) / 255."""
    y, x, c = np.mgrid[0:16, 0:16, 0:3]
    levels = ((7 * x + 13 * y + 29 * c) % 256) / 255
    return torch.from_numpy(levels.transpose(2, 0, 1)[None]).float()


@pytest.mark.parametrize(("variant", "scale"), PARAMETERS)
def test_parameters_are_as_many_as_published(variant: str, scale: int) -> None:
    model = network(variant, scale)
    assert sum(each.numel() for each in model.parameters()) == PARAMETERS[variant, scale]
    assert len(model.state_dict()) == {"SMFANet": 180, "SMFANet+": 268}[variant]


def test_zero_blocks_leave_the_tail_of_twice_the_head() -> None:
    model = network()
    with torch.no_grad():
        for each in model.feats.parameters():
            each.zero_()
        image = pattern()
        expected = model.to_img(2 * model.to_feat(image))
        assert torch.allclose(model(image), expected, atol=1e-6)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 7), (7, 40), (13, 9), (64, 30)])
@pytest.mark.parametrize("scale", [2, 3, 4])
def test_smfanet_enlarges_any_size(height: int, width: int, scale: int) -> None:
    with torch.no_grad():
        enlarged = network(scale=scale)(torch.rand(1, 3, height, width))
    assert enlarged.shape == (1, 3, scale * height, scale * width)
    assert torch.isfinite(enlarged).all()


def test_small_crop_is_padded_by_its_edges() -> None:
    model, crop = network(), torch.rand(1, 3, 5, 6)
    padded = torch.nn.functional.pad(crop, (0, 2, 0, 3), mode="replicate")
    with torch.no_grad():
        assert torch.equal(model(crop), model(padded)[..., :20, :24])


@pytest.mark.parametrize(("variant", "scale"), PARAMETERS)
def test_weights_tell_their_variant_and_scale(variant: str, scale: int, tmp_path: Path) -> None:
    model = network(variant, scale)
    loaded = load_smfanet(saved(tmp_path / "w.pth", model))
    assert loaded.scale == scale
    with torch.no_grad():
        assert torch.equal(loaded(pattern()), model(pattern()))


class Danger:
    @override
    def __reduce__(self) -> Any:
        return (print, ("run",))


def _other(path: Path) -> None:
    saved(path, torch.nn.Linear(2, 2))


def _fewer(path: Path) -> None:
    state = network().state_dict()
    del state["feats.3.smfa.alpha"]
    torch.save({"params": state}, path)


def _shallow(path: Path) -> None:
    saved(path, SMFANet(36, 2, 4))


def _truncated(path: Path) -> None:
    whole = saved(path, network()).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _code(path: Path) -> None:
    torch.save({"params": Danger()}, path)


def _plain_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"params": Danger()}))


def _nan(path: Path) -> None:
    model = network()
    with torch.no_grad():
        model.to_feat.weight[0, 0, 0, 0] = float("nan")
    saved(path, model)


def _bare(path: Path) -> None:
    torch.save(network().state_dict(), path)


def _scalar(path: Path) -> None:
    state = network().state_dict()
    state["to_feat.weight"] = torch.tensor(1.0)
    torch.save({"params": state}, path)


def _complex(path: Path) -> None:
    state = network().state_dict()
    torch.save({"params": {name: tensor.cfloat() for name, tensor in state.items()}}, path)


def _text(path: Path) -> None:
    path.write_text("not weights")


def _missing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("write", "part"),
    [
        (_other, "another network"),
        (_fewer, "another network"),
        (_shallow, "no published SMFANet"),
        (_truncated, "truncated"),
        (_code, "more than tensors"),
        (_plain_pickle, "not a zip file"),
        (_nan, "not finite"),
        (_bare, '"params"'),
        (_scalar, "not a convolution"),
        (_complex, "real numbers"),
        (_text, "not a zip file"),
        (_missing, "cannot be read"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(
    write: Any, part: str, tmp_path: Path, capsys: Any
) -> None:
    write(tmp_path / "w.pth")
    with pytest.raises(ConfigurationError, match=part):
        load_smfanet(tmp_path / "w.pth")
    with pytest.raises(ConfigurationError, match=f"{part}|There is no file"):
        open_magnifier(f"smfanet:{tmp_path / 'w.pth'}")  # when the environment is made
    assert "run" not in capsys.readouterr().out


@pytest.mark.component("smfanet-weights")
def test_published_weights_give_the_golden_values(smfanet_weights: Path) -> None:
    model = load_smfanet(smfanet_weights / "SMFANet_DF2K_100w_x4SR.pth")
    with torch.no_grad():
        output = model(pattern())[0].numpy()
    assert output.mean() == pytest.approx(0.54112, abs=1e-4)
    assert output[:, 0, 0] == pytest.approx([0.00079, 0.09995, 0.20309], abs=1e-4)
    assert output[:, 31, 17] == pytest.approx([0.48187, 0.59598, 0.70915], abs=1e-4)


@pytest.mark.component("smfanet-weights")
def test_published_files_load_all_12(smfanet_weights: Path) -> None:
    for suffix in ("", "_plus"):
        for data in ("DF2K", "DIV2K"):
            for scale in (2, 3, 4):
                file = smfanet_weights / f"SMFANet{suffix}_{data}_100w_x{scale}SR.pth"
                assert load_smfanet(file).scale == scale
