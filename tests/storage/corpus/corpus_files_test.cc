#include "storage/corpus/corpus_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/corpus/check_corpus.h"
#include "storage/corpus/corpus_sample.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class CorpusFilesTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.File(name)).parent_path());
    WriteText(dir_.File(name), content);
    return dir_.File(name);
  }
  // Names within the folder of the test.
  std::vector<std::string> Names(const CorpusFiles& found) {
    std::vector<std::string> names;
    for (const CorpusFile& file : found.files) {
      names.push_back(fs::path(file.path).lexically_relative(dir_.path()));
    }
    return names;
  }

  TempDir dir_;
};

TEST_F(CorpusFilesTest, FoldersAreSortedAndArgumentsAreNot) {
  for (const char* name :
       {"in/b.txt", "in/a/z.jsonl.zst", "in/a.txt.gz", "in/.git/c.txt",
        "in/a/.hidden.txt", "in/code.py", "in/code.py.gz", "in/README",
        "in/c.ndjson", "z.txt"}) {
    Write(name, "x");
  }
  fs::create_directory_symlink(dir_.path(), dir_.File("in/loop"));
  const auto found =
      FindCorpusFiles({.inputs = {dir_.File("z.txt"), dir_.File("in")}});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Names(*found), (std::vector<std::string>{
                               "z.txt", "in/a.txt.gz", "in/a/z.jsonl.zst",
                               "in/b.txt", "in/c.ndjson"}));
  EXPECT_EQ(found->files[1].format, TextFormat::kText);
  EXPECT_EQ(found->files[2].format, TextFormat::kJsonl);
  EXPECT_EQ(found->files[4].format, TextFormat::kJsonl);
  EXPECT_EQ(found->passed_over,
            (std::map<std::string, int64_t>{
                {".py", 1}, {".py.gz", 1}, {"no ending", 1}}));
}

TEST_F(CorpusFilesTest, SaysWhatCannotBeRead) {
  const auto error = [](std::vector<std::string> inputs) {
    return FindCorpusFiles({.inputs = std::move(inputs)}).status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(Fails(error({dir_.File("no")}), absl::StatusCode::kNotFound,
                    {dir_.File("no")}));
  Write("code/a.py", "x");
  EXPECT_TRUE(Fails(error({dir_.File("code")}), kInvalid,
                    {dir_.File("code"), ".jsonl"}));
  EXPECT_TRUE(Fails(error({"-", "-"}), kInvalid, {"- is given twice"}));
  // In a folder, too: nobody wants a corpus without them in silence.
  Write("tables/a.parquet", "PAR1");
  Write("tables/b.txt", "x");
  EXPECT_TRUE(Fails(error({dir_.File("tables")}), kInvalid,
                    {"a.parquet", "python3 -m troupe.parquet"}));
}

TEST_F(CorpusFilesTest, ChecksWhatFilesAre) {
  const auto check = [&](const std::string& name, const std::string& content) {
    return CheckCorpus(
        FindCorpusFiles({.inputs = {Write(name, content)}})->files);
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(check("a.txt", "text").ok());
  EXPECT_TRUE(check("a.txt.gz", Gzipped("text")).ok());
  EXPECT_TRUE(check("b.txt", Zstded("text")).ok()) << "by its bytes";
  EXPECT_TRUE(check("a.jsonl", "{\"text\": \"x\"}\n").ok());
  EXPECT_TRUE(check("empty.txt", "").ok());
  EXPECT_TRUE(Fails(check("b.txt.gz", "text"), kInvalid, {"not compressed"}));
  EXPECT_TRUE(Fails(check("c.txt.gz", Gzipped(std::string(100, '\0'))),
                    kInvalid, {"byte 0 is zero"}));
  EXPECT_TRUE(
      Fails(check("d.txt.gz", Gzipped("%PDF-1.4")), kInvalid, {"is a PDF"}));
  EXPECT_TRUE(Fails(check("e.jsonl", "PAR1...."), kInvalid, {"Parquet"}));
  EXPECT_TRUE(Fails(check("f.txt.zst", Zstded("{\"a\": 1}\n{\"a\": 2}\n")),
                    kInvalid, {"JSON lines", "--format jsonl"}));
}

TEST_F(CorpusFilesTest, ASampleHasSomethingOfEachFile) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "{\"text\": \"word\"}\n";
  const auto found = FindCorpusFiles(
      {.inputs = {Write("a.jsonl.gz", Gzipped(lines)),
                  Write("b.txt.zst", Zstded("other words\n"))}});
  const auto sample = SampleCorpus(found->files, {}, 20'000);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_LE(sample->size(), 20'000u);
  EXPECT_EQ(sample->rfind("word\nword\n", 0), 0u);
  EXPECT_NE(sample->find("other words"), std::string::npos);
}

}  // namespace
}  // namespace troupe
