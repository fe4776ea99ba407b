"""Embeds sentences with a SentenceTransformer: batches are padded to their longest sentence, the last one is short."""

import tempfile

from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = ["[PAD]", "[UNK]", "a", "compiled", "model", "is", "fast"]
SENTENCES = ["a model", "fast model", "a fast model is compiled", "is a model fast", "a compiled model is a fast model"]


def make_model_folder():
    folder = tempfile.mkdtemp()
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(folder)
    return folder


model = SentenceTransformer(make_model_folder(), device="cpu")
model.compile()

results = [model.encode(SENTENCES, batch_size=2, convert_to_tensor=True, show_progress_bar=False)]
