"""Graph breaks: the id, the explanation and the hints out of the text that torch writes for people."""

from compilediag.decode.records.graph_break_text import parse_graph_break

TEXT = """Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with argument types ['<unknown type>'] (has_kwargs False)
  Hint: Avoid calling builtin `print` with argument types.
  Hint: If you are attempting to call a logging function,
    you can try adding it to `torch._dynamo.config.reorderable_logging_functions`.

  Developer debug context: builtin print [<class 'X'>] False

 For more details about this graph break, please visit: https://meta-pytorch.github.io/x/gb0059.html"""


def test_a_break_of_torch_2_13():
    found = parse_graph_break(TEXT, 5, "0/0", "/home/ada/model.py", 12, "print(x)")
    assert found.reason == "Failed to trace builtin operator"
    assert found.break_id == "GB0059"
    assert found.explanation == (
        "Dynamo does not know how to trace builtin operator `print` "
        "with argument types ['<unknown type>'] (has_kwargs False)"
    )
    assert len(found.hints) == 2 and found.hints[1].endswith("`torch._dynamo.config.reorderable_logging_functions`.")
    assert (found.user_file, found.user_line, found.user_code) == ("/home/ada/model.py", 12, "print(x)")
    assert (found.time_ns, found.compile_id, found.title) == (5, "0/0", found.reason)


def test_a_text_without_headings_is_the_reason_and_the_rest_is_missing():
    found = parse_graph_break("generic_jump TensorVariable()\n", 1, None)
    assert found.reason == "generic_jump TensorVariable()"
    assert (found.break_id, found.explanation, found.hints, found.user_line) == (None, None, None, None)


def test_nothing_is_missing_not_empty():
    found = parse_graph_break("", 1, None)
    assert (found.reason, found.title) == (None, "graph_break")


def test_a_hint_that_says_nothing_is_left_out():
    assert parse_graph_break("r\n  Explanation: e\n  Hint: \n  Hint: do this\n", 1, None).hints == ["do this"]
