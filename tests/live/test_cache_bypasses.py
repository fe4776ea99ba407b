"""Why AOTAutograd's cache is bypassed, and that the suggested change ends it. Real Inductor on a small function."""

import contextlib

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

import compilediag


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.saved_tensors[0]


class HashedPass(CustomGraphPass):
    def __call__(self, graph):
        pass

    def uuid(self):
        return get_hash_for_files((__file__,))


def find_bypasses(function, setting=contextlib.nullcontext()):  # noqa: B008
    torch._dynamo.reset()
    with setting, compilediag.watch() as session:
        x = torch.ones(4, requires_grad=True)
        torch.compile(function)(x).sum().backward()
    return [found for found in session.findings() if found.rule == "cache_bypass"], x.grad


def test_a_custom_autograd_function_is_cached_by_the_setting(fresh_inductor_cache):
    function = lambda x: Square.apply(x) + 1  # noqa: E731
    (found,), gradient = find_bypasses(function)
    assert found.fix == {"autograd_cache_allow_custom_autograd_functions": True}
    assert "is spent again in the next one" in found.suggestion
    allowed = torch._functorch.config.patch(found.fix)
    left, same = find_bypasses(function, allowed)
    assert left == []
    torch.testing.assert_close(same, gradient)


def test_a_custom_pass_is_cached_if_it_has_a_uuid(fresh_inductor_cache):
    use = torch._inductor.config.patch
    found, gradient = find_bypasses(lambda x: x.sin() + 1, use(post_grad_custom_post_pass=lambda graph: None))
    assert found and all("CustomGraphPass whose uuid()" in one.suggestion for one in found)
    left, same = find_bypasses(lambda x: x.sin() + 1, use(post_grad_custom_post_pass=HashedPass()))
    assert left == []
    torch.testing.assert_close(same, gradient)
