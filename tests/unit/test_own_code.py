"""Which files are the user's own, on all operating systems, of this process and of others."""

import pytest

from tests.inside import OwnCode

OWN = [
    "/home/ada/train.py",
    "/srv/src/mypackage/model.py",
    "/home/ada/transformers/src/transformers/generation/utils.py",  # an editable install
    "C:\\Users\\Ada\\project\\train.py",
    "C:\\Users\\Ada\\python_project\\src\\lib\\train.py",
    "/Users/ada/Library/project/train.py",
    "/content/train.py",
    "Cell In[3]",
    "<ipython-input-3-0a1b2c3d>",
    "/tmp/ipykernel_1234/567.py",
    "<stdin>",
    "<string>",
    "<python-input-0>",
    "<doctest README.md[0]>",
    "/home/ada/app.pyz/__main__.py",
    "/home/ada/tests/test_train.py",
    "train.py",
    "/home/ada/bin/train",
]
NOT_OWN = [
    "/home/ada/.venv/lib/python3.11/site-packages/transformers/trainer.py",
    "/usr/lib/python3/dist-packages/numpy/core.py",
    "site-packages/transformers/trainer.py",
    "/usr/lib/python3.11/threading.py",
    "/usr/local/lib/python3.13t/asyncio/events.py",
    "/opt/conda/lib/python3.10/contextlib.py",
    "/home/ada/.local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/lib/python3.12/runpy.py",
    "/Library/Frameworks/Python.framework/Versions/3.12/lib/python3.12/functools.py",
    "/usr/lib/python311.zip/runpy.py",
    "C:\\Python311\\Lib\\threading.py",
    "C:\\Users\\Ada\\AppData\\Local\\Programs\\Python\\Python311\\Lib\\contextlib.py",
    "C:\\Users\\Ada\\AppData\\Local\\Programs\\Python\\Python311\\Lib\\site-packages\\lightning\\trainer.py",
    "C:\\ProgramData\\miniconda3\\envs\\ml\\Lib\\runpy.py",
    "C:\\ProgramData\\anaconda3\\Lib\\runpy.py",
    "/srv/pytorch/torch/nn/modules/module.py",
    "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
    "<frozen runpy>",
    "<__array_function__ internals>",
    "<eval_with_key>.3",
    "<attrs generated init x>",
    "/home/ada/app.pex/.deps/rich-1.whl/rich/console.py",
    "/home/ada/compilediag/compilediag/cli/run_command.py",
    None,
]


@pytest.mark.parametrize("file", OWN)
def test_own(file):
    assert OwnCode().is_own(file, "train", "step(x)")


@pytest.mark.parametrize("file", NOT_OWN)
def test_not_own(file):
    assert not OwnCode().is_own(file, "train", "step(x)")


def test_what_installers_and_dataclasses_write_is_not_own():
    assert not OwnCode().is_own("/home/ada/.venv/bin/torchrun", "<module>", "sys.exit(main())")
    assert not OwnCode().is_own("<string>", "__init__")


def test_the_folders_of_the_recorded_process_are_not_own():
    own = OwnCode(libraries=["/snap/odd/packages", "D:\\odd\\Library\\"])
    assert not own.is_own("/snap/odd/packages/rich/console.py") and own.is_own("/snap/odd/packages2/x.py")
    assert not own.is_own("D:\\odd\\Library\\x.py")


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("/home/ada/project", "/home/ada/project/a/b.py", True),
        ("/home/ada/project/", "/home/ada/project/b.py", True),
        ("/home/ada/project", "/home/ada/project2/b.py", False),
        ("/home/ada/train.py", "/home/ada/train.py", True),
        ("train.py", "/home/ada/train.py", True),
        ("./train.py", "/home/ada/train.py", True),
        ("train.py", "/home/ada/strain.py", False),
        ("lightning", "/x/site-packages/lightning/trainer.py", True),
        ("lightning", "/x/site-packages/lightning.py", True),
        ("lightning", "/x/site-packages/lightning_fabric/a.py", False),
        ("lightning.trainer", "/x/site-packages/lightning/trainer.py", True),
        ("lightning.trainer", "C:\\x\\site-packages\\lightning\\trainer.py", True),
        ("C:\\work\\project", "C:\\work\\project\\a.py", True),
        ("Cell In[3]", "Cell In[3]", True),
        ("Cell In[3]", "Cell In[31]", False),
    ],
)
def test_my_code(name, file, expected):
    assert OwnCode([name]).matches(file) is expected
