from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from visenv.envs.arft.coding.tools.code import CodeTool
from visenv.errors import ConfigurationError, ServiceError, ToolError
from visenv.sandbox import INPUT_IMAGE, Execution, LocalBackend, Program, Sandbox, SandboxLimits
from visenv.tools import Store
from visenv.types import Image, Sample

SAMPLE = Sample("sample-1", "?", (), ())
THIN = "it is 2x201, and a side can be at most 100 times the other"
WRITE = "cv2.imwrite('path_to_output_image.jpg', np.full((6, 8, 3), 200, np.uint8))"


class Scripted:
    """Represents a backend that returns the given result."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.programs: list[Program] = []
        self.started = 0

    def start(self) -> None:
        self.started += 1

    def run(self, program: Program) -> Execution:
        self.programs.append(program)
        return self.execution

    def close(self) -> None:
        pass


def gray(width: int, height: int) -> Image:
    return Image.from_pixels(np.full((height, width, 3), 90, np.uint8))


def with_images(**images: Image) -> Store:
    store = Store()
    store.images.update(images)
    return store


def answered(execution: Execution, **options: Any) -> tuple[CodeTool, Scripted]:
    backend = Scripted(execution)
    return CodeTool(sandbox=Sandbox(backend), **options), backend


def test_program_is_really_run_and_its_image_shown() -> None:
    tool = CodeTool()
    store = with_images(input_image=gray(16, 9))
    tool.reset(SAMPLE, store)
    code = f"print(cv2.imread('{INPUT_IMAGE}').shape)\n{WRITE};"
    result = tool.run({"code": code}, store)
    text, image = result.parts
    assert text == "(9, 16, 3)"
    assert isinstance(image, Image)
    assert image.size == (8, 6)
    assert result.detail == {"status": "ok", "image": "input_image", "written": True}
    tool.close()


def test_traceback_is_a_result() -> None:
    store = with_images(input_image=gray(4, 4))
    result = CodeTool().run(
        {"code": "cv2.cvtColor(np.zeros((2, 2), np.uint8), cv2.COLOR_BGR2GRAY)"}, store
    )
    (text,) = result.parts
    assert isinstance(text, str)
    assert 'File "<program>", line 1' in text
    assert "cv2.error" in text
    assert text.endswith("No image was written to 'path_to_output_image.jpg'.")
    assert result.detail["status"] == "error"
    assert result.detail["written"] is False


def test_latest_image_is_worked_on_unless_another_is_named() -> None:
    tool, backend = answered(Execution("ok"))
    store = with_images(input_image=gray(4, 4), observation_1=gray(5, 5))
    assert tool.run({"code": ""}, store).detail["image"] == "observation_1"
    assert tool.run({"code": "", "image": "input_image"}, store).detail["image"] == "input_image"
    for program, name in zip(backend.programs, ("observation_1", "input_image"), strict=True):
        sent = program.images[INPUT_IMAGE]
        assert isinstance(sent, bytes)
        given = Image.from_bytes(sent)
        assert (given.pixels == store.images[name].pixels).all()


@pytest.mark.parametrize(
    ("raw", "store", "complaint"),
    [
        ({}, with_images(a=gray(4, 4)), "python takes code, image. code: Field required"),
        ({"code": 5}, with_images(a=gray(4, 4)), "code: Input should be a valid string"),
        ({"code": "", "path": "/"}, with_images(a=gray(4, 4)), "path: Extra inputs"),
        ({"code": "", "image": "b"}, with_images(a=gray(4, 4)), "There is no image called 'b'."),
        ({"code": ""}, Store(), "There is no image to work on."),
    ],
)
def test_calls_that_do_not_fit_are_refused(
    raw: dict[str, Any], store: Store, complaint: str
) -> None:
    with pytest.raises(ToolError) as caught:
        CodeTool().run(raw, store)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("execution", "shown"),
    [
        (Execution("ok"), ("No image was written to 'path_to_output_image.jpg'.",)),
        (Execution("ok", image=gray(2, 2)), (gray(2, 2),)),
        (Execution("ok", "printed\n", "7", image=gray(2, 2)), ("printed\n7", gray(2, 2))),
        (
            Execution("ok", image_problem="it is too large"),
            ("The image was not taken: it is too large.",),
        ),
        (
            Execution("ok", "\x1b[2J\a\r\0\x9b1A\u202eπ\t\n👩\u200d🔬", image=gray(2, 2)),
            (r"\x1b[2J\x07\r\x00\x9b1A\u202e" + "π\t\n👩\u200d🔬", gray(2, 2)),
        ),
        (Execution("ok", image=gray(2, 200)), (gray(2, 200),)),
        (
            Execution("ok", "a", image=gray(2, 201)),
            (f"a\nThe image was not taken: {THIN}.",),
        ),
        (
            Execution("wall", "a\n", error="The program was stopped."),
            ("a\nThe program was stopped.\nNo image was written to 'path_to_output_image.jpg'.",),
        ),
    ],
)
def test_result_of_a_program_as_shown(execution: Execution, shown: tuple[str | Image, ...]) -> None:
    tool, _ = answered(execution)
    assert tool.run({"code": ""}, with_images(a=gray(4, 4))).parts == shown


def test_long_text_is_shown_with_its_beginning_and_end() -> None:
    tool, _ = answered(Execution("ok", "a" * 500 + "z" * 500, image=gray(2, 2)), characters=203)
    text = tool.run({"code": ""}, with_images(a=gray(4, 4))).parts[0]
    assert text == "a" * 100 + "\n…\n" + "z" * 100


def test_limits_are_handed_on() -> None:
    limits = SandboxLimits(wall_seconds=2.0)
    tool, backend = answered(Execution("ok"), limits=limits)
    tool.run({"code": "x"}, with_images(a=gray(4, 4)))
    assert backend.programs[0].limits == limits


def test_episode_opens_only_where_programs_can_be_run() -> None:
    class Refusing(Scripted):
        @override
        def start(self) -> None:
            raise ConfigurationError("not here")

    tool, backend = answered(Execution("ok"))
    tool.reset(SAMPLE, Store())
    assert backend.started == 1
    with pytest.raises(ConfigurationError, match="not here"):
        CodeTool(sandbox=Sandbox(Refusing(Execution("ok")))).reset(SAMPLE, Store())


def test_sandbox_that_fails_is_no_result() -> None:
    class Failing(Scripted):
        @override
        def run(self, program: Program) -> Execution:
            raise ServiceError("sandbox", "gone")

    tool = CodeTool(sandbox=Sandbox(Failing(Execution("ok"))))
    with pytest.raises(ServiceError, match="gone"):
        tool.run({"code": ""}, with_images(a=gray(4, 4)))


def test_example_and_random_calls_write_an_image() -> None:
    tool = CodeTool()
    store = with_images(first=gray(12, 8), second=gray(8, 12))
    rng = np.random.default_rng(0)
    for arguments in (tool.example(), *(tool.random_arguments(rng, store) for _ in range(6))):
        result = tool.call(arguments, store)
        assert result.detail["status"] == "ok", result
        assert result.detail["written"]


def test_code_tool_pickles_with_its_sandbox() -> None:
    tool = CodeTool(
        sandbox=Sandbox(LocalBackend(), limits=SandboxLimits(wall_seconds=9.0)), characters=300
    )
    copy = pickle.loads(pickle.dumps(tool))
    assert copy.characters == 300
    assert copy.sandbox.limits.wall_seconds == 9.0
    assert copy.run({"code": "1 + 1"}, with_images(a=gray(4, 4))).parts[0].startswith("2\n")
    copy.sandbox.close()


def test_code_tool_refuses_a_text_limit_that_is_too_small() -> None:
    with pytest.raises(ConfigurationError, match="characters must be at least 200, got 10"):
        CodeTool(characters=10)


def test_program_that_fails_has_the_same_output_in_each_run() -> None:
    tool = CodeTool()
    store = with_images(input_image=gray(16, 9))
    tool.reset(SAMPLE, store)
    # OpenCV's warning contains the time since it was loaded
    code = "cv2.imread('nowhere.jpg').shape"
    texts = {tool.run({"code": code}, store).parts[0] for _ in range(2)}
    assert len(texts) == 1
    assert "nowhere.jpg" in str(texts)


def test_value_of_writing_an_image_is_not_shown() -> None:
    tool, store = CodeTool(), with_images(input_image=gray(16, 9))
    tool.reset(SAMPLE, store)
    assert [type(part) for part in tool.run({"code": WRITE}, store).parts] == [Image]
    (text,) = tool.run({"code": "1 == 1"}, store).parts
    assert "True" in str(text)
