#include "storage/corpus/prepare_tokens.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/dataset/token_file.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/corpus/prepare.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::vector<int32_t> Tokens(const std::string& path) {
  const auto file = TokenFile::Open(path);
  EXPECT_TRUE(file->Verify().ok()) << file->Verify();
  std::vector<int32_t> tokens(file->size());
  EXPECT_TRUE(file->Read(0, tokens.size(), tokens.data()).ok());
  return tokens;
}

TEST(PrepareTokens, TakesAFileLargerThanItsBuffers) {
  TempDir dir;
  std::string text(3'500'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 7 + i / 1000);
  }
  WriteText(dir.File("text"), text);
  const auto tokenizer = MakeBytesTokenizer();
  uint64_t told = 0;
  const auto header = Prepare(
      *tokenizer, {.inputs = {dir.File("text")},
                   .path = dir.File("t"),
                   .options = {.unpack = false,
                               .progress = [&](uint64_t done, uint64_t total) {
                                 EXPECT_LE(told, done);
                                 EXPECT_EQ(total, text.size());
                                 told = done;
                                 return absl::OkStatus();
                               }}});
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->header.token_count, text.size());
  EXPECT_EQ(told, text.size());
  EXPECT_EQ(*tokenizer->Decode(Tokens(dir.File("t"))), text);
  EXPECT_TRUE(
      Fails(Prepare(*tokenizer, {{dir.File("no")}, dir.File("t")}).status(),
            absl::StatusCode::kNotFound, {dir.File("no")}));
}

// Until all of the new tokens are on the disk.
TEST(PrepareTokens, TheOldTokensKeepTheirModel) {
  TempDir dir;
  WriteText(dir.File("text"), "new words");
  const std::string old_model = SmallModel(LikeLlama("unigram"));
  const std::string model = SmallModel(LikeLlama("bpe"));
  const auto old_tokenizer = MakeSentencePieceTokenizer(old_model);
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  PrepareCall call = {.inputs = {dir.File("text")},
                      .path = dir.File("t"),
                      .options = {.model = old_model}};
  ASSERT_TRUE(Prepare(**old_tokenizer, call).ok());
  const std::vector<int32_t> old_tokens = Tokens(dir.File("t"));
  const auto expect = [&](const std::string& of_model,
                          const std::vector<int32_t>& tokens) {
    EXPECT_EQ(*ReadTokenizerModel(TokenizerModelPath(dir.File("t"))), of_model);
    EXPECT_EQ(Tokens(dir.File("t")), tokens);
  };
  call.options.model = model;
  call.options.progress = [](uint64_t, uint64_t) {
    return absl::CancelledError("enough");
  };
  EXPECT_TRUE(absl::IsCancelled(Prepare(**tokenizer, call).status()));
  expect(old_model, old_tokens);
  call.options.progress = [&](uint64_t, uint64_t) {
    expect(old_model, old_tokens);  // while the new ones are written
    return absl::OkStatus();
  };
  ASSERT_TRUE(Prepare(**tokenizer, call).ok());
  std::vector<int32_t> tokens;
  ASSERT_TRUE((*tokenizer)->Encode("new words", tokens).ok());
  tokens.push_back(*(*tokenizer)->eos_id());
  ASSERT_NE(tokens, old_tokens);
  expect(model, tokens);
}

// SentencePiece's trainer gives its models such names, too.
TEST(PrepareTokens, TokensWithoutAModelLeaveAnothersAlone) {
  TempDir dir;
  WriteText(dir.File("text"), "new words");
  const std::string model = SmallModel(LikeLlama("unigram"));
  const std::string path = TokenizerModelPath(dir.File("t"));
  WriteText(path, model);
  ASSERT_TRUE(Prepare(*MakeBytesTokenizer(),
                      {.inputs = {dir.File("text")}, .path = dir.File("t")})
                  .ok());
  EXPECT_EQ(*ReadTokenizerModel(path), model);
}

// Not "is it text?": what to do about it.
TEST(PrepareTokens, ATextThatCannotBeCutIsRefused) {
  TempDir dir;
  WriteText(dir.File("text"), std::string((64 << 20) + (1 << 19), 'x'));
  const std::string model = SmallModel(LikeLlama("unigram"));
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  const auto tokenize = [&](bool eos_per_line) {
    return Prepare(**tokenizer, {.inputs = {dir.File("text")},
                                 .path = dir.File("t"),
                                 .lines = eos_per_line})
        .status();
  };
  EXPECT_TRUE(Fails(tokenize(false), absl::StatusCode::kInvalidArgument,
                    {dir.File("text"), "without a place to cut",
                     (*tokenizer)->name(), "break the text into lines"}));
  EXPECT_TRUE(Fails(tokenize(true), absl::StatusCode::kInvalidArgument,
                    {dir.File("text"), "text:1", "the line has more than",
                     "do without --append-eos-per-line"}));
}

TEST(PrepareTokens, EndedItLeavesNothing) {
  TempDir dir;
  WriteText(dir.File("text"), std::string(3'000'000, 'x'));
  WriteText(dir.File("t"), "what was there");
  int asked = 0;
  const absl::Status ended =
      Prepare(*MakeBytesTokenizer(),
              {.inputs = {dir.File("text")},
               .path = dir.File("t"),
               .options = {.progress =
                               [&](uint64_t, uint64_t) {
                                 return ++asked == 5
                                            ? absl::CancelledError("enough")
                                            : absl::OkStatus();
                               }}})
          .status();
  EXPECT_EQ(ended, absl::CancelledError("enough"));
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(dir.File("t")).parent_path())) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"t", "text"}));
  std::string content;
  std::getline(std::ifstream(dir.File("t")), content);
  EXPECT_EQ(content, "what was there");
}

TEST(PrepareTokens, PartsOfATextAreNotSeen) {
  TempDir dir;
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama("bpe")));
  std::string text;
  while (text.size() < 700'000) {
    for (const std::string& line : TrainingLines()) {
      text += line + (text.size() % 5 == 0 ? "\n" : " ");
    }
  }
  WriteText(dir.File("text"), text);
  const auto prepared = Prepare(
      **tokenizer, {.inputs = {dir.File("text")}, .path = dir.File("t")});
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  EXPECT_EQ(prepared->header.tokenizer, (*tokenizer)->name());
  EXPECT_EQ(prepared->header.documents, 1u);
  std::vector<int32_t> whole;
  ASSERT_TRUE((*tokenizer)->Encode(text, whole).ok());
  whole.push_back(*(*tokenizer)->eos_id());
  EXPECT_EQ(Tokens(dir.File("t")), whole);
}

TEST(PrepareTokens, LinesMayBeDocuments) {
  TempDir dir;
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama("bpe")));
  WriteText(dir.File("text"), "The quick fox\r\n\r\n\nA lazy dog");
  ASSERT_TRUE(Prepare(**tokenizer, {.inputs = {dir.File("text")},
                                    .path = dir.File("t"),
                                    .lines = true})
                  .ok());
  std::vector<int32_t> want;
  for (const char* line : {"The quick fox", "A lazy dog"}) {
    ASSERT_TRUE((*tokenizer)->Encode(line, want).ok());
    want.push_back(2);
  }
  EXPECT_EQ(Tokens(dir.File("t")), want);
  EXPECT_TRUE(Fails(
      Prepare(
          *MakeBytesTokenizer(),
          {.inputs = {dir.File("text")}, .path = dir.File("t"), .lines = true})
          .status(),
      absl::StatusCode::kInvalidArgument,
      {"bytes has no token that ends a document"}));
}

TEST(PrepareTokens, RefusesWhatHasNoText) {
  TempDir dir;
  WriteText(dir.File("text"), "");
  EXPECT_TRUE(
      Fails(Prepare(*MakeBytesTokenizer(),
                    {.inputs = {dir.File("text")}, .path = dir.File("t")})
                .status(),
            absl::StatusCode::kInvalidArgument, {dir.File("text"), "empty"}));
}

TEST(PrepareTokens, LeavesTheTextAlone) {
  TempDir dir;
  WriteText(dir.File("text"), "hello");
  std::filesystem::create_symlink(dir.File("text"), dir.File("link"));
  for (const char* out : {"text", "link"}) {
    EXPECT_TRUE(
        Fails(Prepare(*MakeBytesTokenizer(),
                      {.inputs = {dir.File("text")}, .path = dir.File(out)})
                  .status(),
              absl::StatusCode::kInvalidArgument, {dir.File(out), "--out"}));
  }
  EXPECT_EQ(std::filesystem::file_size(dir.File("text")), 5);
}

// A corpus of all kinds of files in a folder `in`, whose parts are small and
// large.
class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    fs::create_directory(dir_.File("in"));
    std::string lines;
    std::string text;
    for (int i = 0; text.size() < 270'000; ++i) {
      text += "word " + std::to_string(i * i) + (i % 9 == 0 ? "\n" : " ");
      if (i % 8 > 0) continue;
      lines += "{\"id\": 1, \"text\": \"line " + std::to_string(i) + "\"}\r\n";
    }
    Write("a.txt", "\xef\xbb\xbfThe first text\n");
    Write("b.jsonl.zst", Zstded(lines));
    Write("c.txt.gz", Gzipped(text));
    Write("d.txt", "");
    Write("e.jsonl",
          "\n{\"text\": \"one\"}\n \n{\"text\": \"\"}\n"
          "{\"text\": \"two\"}");
  }

  // Trained once.
  static const std::string& Model() {
    static const auto& model = *new std::string(SmallModel(LikeLlama("bpe")));
    return model;
  }

  void Write(const std::string& name, const std::string& content) {
    WriteText(dir_.File("in/" + name), content);
  }
  absl::StatusOr<PreparedTokens> PrepareAll(
      const std::string& out, const PrepareTokensOptions& options = {}) {
    return Prepare(*tokenizer_, {.inputs = {dir_.File("in")},
                                 .path = dir_.File(out),
                                 .options = options});
  }

  TempDir dir_;
  const std::unique_ptr<Tokenizer> tokenizer_ =
      MakeSentencePieceTokenizer(Model()).value();
};

TEST_F(CorpusTest, EachDocumentEndsOnce) {
  const auto prepared = PrepareAll("t");
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const TokenFile file = TokenFile::Open(dir_.File("t")).value();
  EXPECT_TRUE(file.Verify().ok()) << file.Verify();
  const std::vector<int32_t> tokens = Tokens(dir_.File("t"));
  const auto ends = file.DocumentEnds(0, file.size());
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_EQ(ends->size(), file.layout().documents);
  EXPECT_EQ(ends->back(), file.size());
  std::vector<std::string> documents;
  uint64_t begin = 0;
  for (const uint64_t end : *ends) {
    ASSERT_EQ(tokens[end - 1], *tokenizer_->eos_id());
    const auto text = tokenizer_->Decode(
        absl::MakeConstSpan(tokens).subspan(begin, end - 1 - begin));
    documents.push_back(*text);
    begin = end;
  }
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), *tokenizer_->eos_id()),
            documents.size());
  EXPECT_EQ(documents[0], "The first text\n") << "without its mark";
  EXPECT_EQ(documents[1], "line 0");
  EXPECT_EQ(documents.end()[-3].substr(0, 7), "word 0\n");
  EXPECT_EQ(documents.end()[-2], "one");
  EXPECT_EQ(documents.end()[-1], "two");
}

TEST_F(CorpusTest, ThreadsAreNotSeen) {
  ASSERT_TRUE(PrepareAll("of1").ok());
  const std::string bytes = ReadText(dir_.File("of1"));
  for (const int threads : {2, 5}) {
    ASSERT_TRUE(PrepareAll("t", {.threads = threads}).ok());
    EXPECT_EQ(ReadText(dir_.File("t")) == bytes, true) << threads;
  }
}

// Wherever it was killed: at each step what is on the disk is taken away, and
// continued by another call.
TEST_F(CorpusTest, KilledItIsContinued) {
  ASSERT_TRUE(PrepareAll("whole").ok());
  const std::string bytes = ReadText(dir_.File("whole"));
  const std::string partial = dir_.File("t.partial");
  std::vector<std::string> snapshots;
  const auto take = [&](uint64_t, uint64_t) {
    const std::string copy = dir_.File(absl::StrCat("at", snapshots.size()));
    fs::copy(partial, copy);
    // What it wrote behind what it saved.
    std::ofstream(copy + "/tokens", std::ios::app) << "more than was saved";
    snapshots.push_back(copy);
    return absl::OkStatus();
  };
  ASSERT_TRUE(PrepareAll("t", {.save_every_bytes = 1, .progress = take}).ok());
  ASSERT_EQ(ReadText(dir_.File("t")), bytes);
  ASSERT_GT(snapshots.size(), 4u);
  for (const std::string& snapshot : snapshots) {
    fs::remove(dir_.File("t"));
    fs::rename(snapshot, partial);
    std::string note;
    const auto prepared = PrepareAll(
        "t",
        {.threads = 2, .note = [&](const std::string& line) { note = line; }});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_NE(note.find("continuing behind its"), std::string::npos) << note;
    EXPECT_EQ(ReadText(dir_.File("t")) == bytes, true) << snapshot;
    EXPECT_FALSE(fs::exists(partial));
  }
}

TEST_F(CorpusTest, WhatDoesNotFitIsBegunAnew) {
  ASSERT_TRUE(PrepareAll("whole").ok());
  const std::string bytes = ReadText(dir_.File("whole"));
  const auto leave_partial = [&] {
    int calls = 0;
    const auto stopped = PrepareAll(
        "t", {.save_every_bytes = 1, .progress = [&](uint64_t, uint64_t) {
                return ++calls == 4 ? absl::CancelledError("enough")
                                    : absl::OkStatus();
              }});
    EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
    EXPECT_TRUE(fs::exists(dir_.File("t.partial/state")));
  };
  const auto note_of_next = [&] {
    std::string note;
    EXPECT_TRUE(
        PrepareAll("t", {.note = [&](const std::string& line) { note = line; }})
            .ok());
    EXPECT_EQ(ReadText(dir_.File("t")) == bytes, true) << note;
    return note;
  };
  leave_partial();
  std::string tokens = ReadText(dir_.File("t.partial/tokens"));
  tokens[tokens.size() / 2] ^= 1;
  WriteText(dir_.File("t.partial/tokens"), tokens);
  EXPECT_NE(note_of_next().find("is damaged; beginning anew"),
            std::string::npos);
  leave_partial();
  WriteText(dir_.File("t.partial/state"), "{}\n");
  EXPECT_NE(note_of_next().find("its state is damaged"), std::string::npos);
  // Other texts: the same names, but written again.
  leave_partial();
  fs::last_write_time(dir_.File("in/a.txt"),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(note_of_next().find("it is of other texts"), std::string::npos);
  // Somebody's own folder is left alone.
  fs::create_directory(dir_.File("t.partial"));
  WriteText(dir_.File("t.partial/mine"), "mine");
  EXPECT_TRUE(Fails(PrepareAll("t").status(),
                    absl::StatusCode::kFailedPrecondition,
                    {"t.partial: is there, and is no unfinished token file"}));
  EXPECT_EQ(ReadText(dir_.File("t.partial/mine")), "mine");
}

TEST_F(CorpusTest, TwoAtOnceAreRefused) {
  ASSERT_TRUE(PrepareAll("t", {.progress =
                                   [&](uint64_t, uint64_t) {
                                     EXPECT_TRUE(Fails(
                                         PrepareAll("t").status(),
                                         absl::StatusCode::kFailedPrecondition,
                                         {"is being written by"}));
                                     return absl::OkStatus();
                                   }})
                  .ok());
}

TEST_F(CorpusTest, BadLinesAreNamedOrLeftOut) {
  Write("f.jsonl.gz",
        Gzipped("{\"text\": \"fine\"}\n{\"text\": 3}\n"
                "{\"text\": \"good\"}\nnot JSON\n"
                "{\"text\": \"" +
                std::string(2000, 'x') + "\"}\n{\"text\": \"last\"}\n"));
  PrepareTokensOptions options = {.rules = {.line_bytes_max = 1000}};
  for (const int threads : {1, 3}) {
    options.threads = threads;
    EXPECT_TRUE(Fails(PrepareAll("t", options).status(),
                      absl::StatusCode::kInvalidArgument,
                      {"in/f.jsonl.gz:2: its field \"text\" is a number",
                       "--skip-bad-lines"}));
    EXPECT_FALSE(fs::exists(dir_.File("t.partial")));
    EXPECT_FALSE(fs::exists(dir_.File("t")));
  }
  // What was saved before the error stays, and is continued without it.
  options.save_every_bytes = 1;
  EXPECT_TRUE(Fails(PrepareAll("t", options).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"f.jsonl.gz:2", "the same command continues it"}));
  options.rules.skip_bad_lines = true;
  const auto prepared = PrepareAll("t", options);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->skipped_lines, 3);
  const std::vector<int32_t> tokens = Tokens(dir_.File("t"));
  const std::string text = *tokenizer_->Decode(tokens);
  EXPECT_NE(text.find("last"), std::string::npos);
  EXPECT_EQ(text.find("xxxx"), std::string::npos);
}

// A line that is too long to be held, as well.
TEST_F(CorpusTest, ALineThatIsTooLongIsNotHeld) {
  Write("f.jsonl", "{\"text\": \"one\"}\n{\"text\": \"" +
                       std::string(3 << 20, 'x') +
                       "\"}\n{\"text\": \"last\"}\n");
  PrepareTokensOptions options = {.rules = {.line_bytes_max = 1 << 20}};
  EXPECT_TRUE(Fails(PrepareAll("t", options).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"in/f.jsonl:2: the line has more than 1 MiB",
                     "--max-line-mib", "--skip-bad-lines"}));
  options.rules.skip_bad_lines = true;
  const auto prepared = PrepareAll("t", options);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->skipped_lines, 1);
}

// A file may have a limited number of bytes here, as on a disk that is full.
TEST_F(CorpusTest, AFullDiskEndsItAndTheSameCommandContinues) {
  ASSERT_TRUE(PrepareAll("whole").ok());
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit low = {.rlim_cur = 60'000, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status full = PrepareAll("t", {.save_every_bytes = 1}).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_FALSE(full.ok());
  EXPECT_NE(full.message().find("t.partial/tokens"), std::string::npos) << full;
  EXPECT_NE(full.message().find("the same command continues it"),
            std::string::npos)
      << full;
  EXPECT_FALSE(fs::exists(dir_.File("t")));
  ASSERT_TRUE(PrepareAll("t").ok());
  EXPECT_EQ(ReadText(dir_.File("t")) == ReadText(dir_.File("whole")), true);
}

TEST_F(CorpusTest, AFileThatIsWrittenMeanwhileIsAnError) {
  bool written = false;
  const auto changed = PrepareAll("t", {.progress = [&](uint64_t, uint64_t) {
                                    if (!written)
                                      Write("c.txt.gz", Gzipped("other text"));
                                    written = true;
                                    return absl::OkStatus();
                                  }});
  EXPECT_TRUE(Fails(changed.status(), absl::StatusCode::kFailedPrecondition,
                    {"in/c.txt.gz", "changed while it was read"}));
  EXPECT_FALSE(fs::exists(dir_.File("t")));
}

}  // namespace
}  // namespace troupe
