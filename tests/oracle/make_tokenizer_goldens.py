"""Makes tests/oracle/tokenizers/: small tokenizers, and what `tokenizers` makes
of texts.

    python make_tokenizer_goldens.py

Each <family>.json is a tokenizer.json with the parts that a family of models
has, trained here. texts.json has texts, base64 of their bytes; and
<family>.ids.json the ids of each (bytes that are not UTF-8 read as Python's
errors="replace" reads them), and the text that those ids decode to. trained.json
is what the library's trainer makes of these texts. README.md
says how to install what this needs.
"""

import base64
import json
import os
import random
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")

SENTENCES = [
    "All human beings are born free and equal in dignity and rights.",
    "They're endowed with reason; I'll act, you've acted, it's done, WE'RE HERE.",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straße, Größe!",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "Todos los seres humanos nacen libres e iguales, ¿verdad? ¡Sí, señor!",
    "Все люди рождаются свободными и равными в своём достоинстве и правах.",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι, ΣΊΣΥΦΟΣ.",
    "יולדו כל בני אדם חופשיים ושווים בערכם ובזכויותיהם.",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، ١٢٣٤.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है। १२३",
    "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。",
    "すべての人間は、生まれながらにして自由であり、カタカナ ﾊﾝｶｸ ｶﾞ です。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İIıi",
    "ყველა ადამიანი იბადება თავისუფალი და თანასწორი.",
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար:",
    "ሁሉም ሰዎች ነጻና እኩል ሆነው ተወለዱ።",
    "ມະນຸດເກີດມາມີສິດເສລີພາບ และ ពិភពលោក မြန်မာ",
    "def f(x, y=0x1F):\n    if x >= 10 and y != 2:\n        return x ** 2 + y\n\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];  // 1234567 items\n}\r\n",
    "    <div class=\"a-b\">  text  </div>\n\n\n  {\"key\": [1, 2.5e-3, null]}",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇯🇵 ❤️‍🔥 e\u0301 \u00e9 \u1100\u1161\u11a8 \ufb01 \u2126 \u00bd \u2167",
    "math: ∑∫√≤≥≠ → ⇒ ∀x∈ℝ, α²+β³ = γ½; €5 £10 ¥100 50% #1 @you a_b_c",
]

ODD = [
    b"", b" ", b"  ", b"\n", b"\r\n", b"\t", b"a", b" a", b"a ", b"  a  b   c    ",
    b"\n\n a\n b \n\n\n", b"\x00\x01\x02\x1b[0m\x7f", b"\xc2\x85\xc2\xa0x\xe1\xa0\x8ey",
    b"\xe2\x80\x8bzero\xe2\x80\x8dwidth\xef\xbb\xbf", b"\xff\xfe\x80abc\xc3",
    b"ok \xe2\x82 bad \xf0\x9f\x98 \xed\xa0\x80 \xc0\xaf \xf5\x80\x80\x80 end",
    b"'s 't 're 've 'm 'll 'd 'S 'LL x's\xe2\x80\x99s \xc5\xbf'\xc5\xbf",
    b"1 12 123 1234 12345 3.14159 1,000,000 0xFF \xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4",
    b"<s></s><unk><|endoftext|> <|im_start|>user\nhi<|im_end|>\n<0x0A> <mask>  x",
    b" <mask> a<mask>b xword word wordy word.  strip   strip\nstrip", b"[CLS] [SEP][MASK] [mask]",
    "\u2581 \u2581a \u0120 \u010a \u00c3".encode(), b"a" * 300, b"ab" * 200, b" " * 100 + b"x",
    b"\n" * 50, b"!" * 77 + b"?!" * 20, "\u0301\u0301a\u0301\u0300".encode(),
    "\u05d0\u05b0\u05d1 \u0627\u064e\u0644".encode(), "x\u3000y\u2003z\u2028w\u2029".encode(),
    "\ufffd\ufffe\uffff\U0010ffff\ue000".encode(), "\u1e9e\u0130\u0131\u03a3\u03c2\u212a\u017f".encode(),
]


def texts():
    shuffled = random.Random(3)
    made = list(ODD) + [s.encode() for s in SENTENCES]
    parts = ODD[1:] + [s.encode() for s in SENTENCES]
    for _ in range(60):
        made.append(b"".join(shuffled.choices(parts, k=shuffled.randrange(2, 5))))
    for _ in range(40):
        made.append("".join(chr(shuffled.choice([
            shuffled.randrange(0x20, 0x7f), shuffled.randrange(0xa0, 0x600),
            shuffled.randrange(0x900, 0x1200), shuffled.randrange(0x2000, 0x2700),
            shuffled.randrange(0x3000, 0xd000), shuffled.randrange(0x1f300, 0x1f700)]))
            for _ in range(30)).encode())
    return made


GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def train_bpe(tokenizer, size, special=(), alphabet=True, **options):
    tokenizer.train_from_iterator(SENTENCES * 3, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [],
        **options))
    return tokenizer


def byte_level(*splits, normalizer=None, special=("<|endoftext|>",), size=700, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    steps = [pre_tokenizers.Split(Regex(s), "isolated") for s in splits]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not steps)])
    tokenizer.decoder = decoders.ByteLevel()
    return train_bpe(tokenizer, size, special)


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train_bpe(tokenizer, 700, ["<|endoftext|>"])


def roberta():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    train_bpe(tokenizer, 500, ["<s>", "</s>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.add_tokens([AddedToken("word", single_word=True),
                          AddedToken("strip", lstrip=True, rstrip=True, normalized=False)])
    return tokenizer


def gpt_neox():
    tokenizer = byte_level(normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=False) for n in range(24, 1, -1)])
    return tokenizer


def llama3():
    tokenizer = byte_level(GPT4, special=(), ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[
            ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))])])
    return tokenizer


def qwen2():
    tokenizer = byte_level(QWEN, normalizer=normalizers.NFC(), special=())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


def deepseek():
    return byte_level(*DEEPSEEK, special=("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"))


def starcoder():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return train_bpe(tokenizer, 500, ["<|endoftext|>"])


def with_bytes(tokenizer, size, prefix=True):
    """A Llama-like vocabulary: byte tokens, pieces with their spaces."""
    return train_bpe(tokenizer, size, ["<unk>", "<s>", "</s>"] +
                     ["<0x%02X>" % b for b in range(256)], alphabet=False)


def llama_decoder():
    return decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])


def without_special(text, keep):
    """Byte pieces are no added tokens."""
    made = json.loads(text)
    made["added_tokens"] = [t for t in made["added_tokens"] if t["content"] in keep]
    return Tokenizer.from_str(json.dumps(made))


def llama2():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    # Trained on words, so that no piece has a space within.
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    with_bytes(tokenizer, 900)
    made = json.loads(tokenizer.to_str())
    made["pre_tokenizer"] = None
    tokenizer = without_special(json.dumps(made), ("<unk>", "<s>", "</s>"))
    tokenizer.decoder = llama_decoder()
    return tokenizer


def mistral():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first")
    with_bytes(tokenizer, 900)
    made = json.loads(tokenizer.to_str())
    made["pre_tokenizer"]["split"] = False
    tokenizer = without_special(json.dumps(made), ("<unk>", "<s>", "</s>"))
    tokenizer.decoder = llama_decoder()
    return tokenizer


def charsmap():
    """A small table of characters, in SentencePiece's format."""
    rules = [("FF21", "41"), ("FF22", "42"), ("65 301", "E9"), ("2167", "56 49 49 49"),
             ("FB01", "66 69"), ("3000", "20"), ("9", "20"), ("A", "20"), ("200B", ""),
             ("FF76", "30AB"), ("FF76 FF9E", "30AC"), ("BD", "31 2F 32"), ("D", "20")]
    with tempfile.TemporaryDirectory() as folder:
        table, text = os.path.join(folder, "rules.tsv"), os.path.join(folder, "text")
        with open(table, "w") as file:
            file.writelines("%s\t%s\n" % rule for rule in rules)
        with open(text, "w") as file:
            file.writelines(s.replace("\n", " ") + "\n" for s in SENTENCES)
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=os.path.join(folder, "m"), vocab_size=600,
            normalization_rule_tsv=table, hard_vocab_limit=False, minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        with open(os.path.join(folder, "m.model"), "rb") as file:
            model.ParseFromString(file.read())
    return base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode(), model


def unigram(pre_tokenizer, normalizer_steps, byte_fallback=False):
    table, model = charsmap()
    pieces = [(p.piece, p.score) for p in model.pieces]
    if byte_fallback:
        pieces += [("<0x%02X>" % b, -50.0) for b in range(256)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=byte_fallback))
    made = json.loads(tokenizer.to_str())
    made["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": table}] + normalizer_steps}
    made["pre_tokenizer"] = pre_tokenizer
    made["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                       "split": True}
    made["added_tokens"] = [
        {"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for i, c in enumerate(["<unk>", "<s>", "</s>"])]
    return Tokenizer.from_str(json.dumps(made))


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def t5():
    return unigram({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]},
                   [])


def albert():
    return unigram(METASPACE, [
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}], byte_fallback=True)


def bert(lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(SENTENCES * 3, trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def words():
    """Ends of words, unknown characters, and what the other families lack."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>",
                                     continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
        normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.CharDelimiterSplit("x")])
    train_bpe(tokenizer, 400, ["<unk>"], alphabet=False, limit_alphabet=60,
              end_of_word_suffix="</w>", continuing_subword_prefix="##")
    tokenizer.add_tokens([AddedToken("WORD", normalized=True), "Größe"])
    return tokenizer


def merged():
    """The other ways to split."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"[.,;]"), "merged_with_previous"),
        pre_tokenizers.Split(" ", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"\d{2}|-"), "contiguous"),
        pre_tokenizers.Split(Regex(r"\w+"), "removed", invert=True),
        pre_tokenizers.Split(Regex(r"(?=[A-Z])|e*"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return train_bpe(tokenizer, 500, ["</s>"])


def chained():
    """Steps that each write a text of their own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace("▁", prepend_scheme="always"), pre_tokenizers.Digits(False),
        pre_tokenizers.Metaspace("▁", prepend_scheme="never", split=False),
        pre_tokenizers.ByteLevel(add_prefix_space=True)])
    tokenizer.decoder = decoders.ByteLevel()
    return train_bpe(tokenizer, 400, ["</s>"])


FAMILIES = {
    "chained": chained,
    "gpt2": gpt2, "roberta": roberta, "gpt_neox": gpt_neox, "llama3": llama3, "qwen2": qwen2,
    "deepseek": deepseek, "starcoder": starcoder, "llama2": llama2, "mistral": mistral, "t5": t5,
    "albert": albert, "bert": bert, "words": words, "merged": merged,
    "o200k": lambda: byte_level(O200K),
}


def write(name, value):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        file.write(value)


def trained():
    """What the library's trainer makes of texts.json, as `troupe data prepare
    --train-tokenizer bpe` makes it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [text.decode(errors="replace") for text in texts()],
        trainers.BpeTrainer(
            vocab_size=800, min_frequency=2, show_progress=False,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def main():
    os.makedirs(HERE, exist_ok=True)
    write("trained.json", trained().to_str() + "\n")
    given = texts()
    write("texts.json", json.dumps([base64.b64encode(t).decode() for t in given], indent=0) + "\n")
    for family, make in FAMILIES.items():
        tokenizer = make()
        write(family + ".json", tokenizer.to_str() + "\n")
        # Read back: what counts is the file.
        tokenizer = Tokenizer.from_file(os.path.join(HERE, family + ".json"))
        lines = []
        for text in given:
            ids = tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False).ids
            lines.append(json.dumps({"ids": ids, "text": tokenizer.decode(ids)}))
        write(family + ".ids.json", "[\n" + ",\n".join(lines) + "\n]\n")
        print(family, tokenizer.get_vocab_size())


if __name__ == "__main__":
    main()
