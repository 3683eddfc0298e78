// What comes through a pipe is looked at, though it can be read once.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/corpus/prepare_tokens.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "tests/storage/corpus/packed.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// `content` comes through a pipe, as the standard input may.
absl::Status PreparePiped(const std::string& content, TextFormat format,
                          bool unpack = true) {
  TempDir dir;
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (size_t at = 0; at < content.size();) {
      const ssize_t put =
          write(ends[1], content.data() + at, content.size() - at);
      if (put <= 0) break;
      at += static_cast<size_t>(put);
    }
    close(ends[1]);
  });
  const auto tokenizer = MakeBytesTokenizer();
  const absl::Status status =
      PrepareTokens(*tokenizer,
                    {.files = {{.path = absl::StrCat("/dev/fd/", ends[0]),
                                .format = format}},
                     .path = dir.File("t"),
                     .unpack = unpack})
          .status();
  // A call that refuses it does not read the rest.
  std::string rest(1 << 16, '\0');
  while (read(ends[0], rest.data(), rest.size()) > 0) continue;
  writer.join();
  close(ends[0]);
  if (!status.ok()) EXPECT_FALSE(fs::exists(dir.File("t")));
  return status;
}

TEST(PrepareTokens, LooksAtWhatComesThroughAPipe) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::string text = "some words\n";
  const std::string records = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
  const std::string weights = std::string("\x20\0\0\0\0\0\0\0", 8) +
                              "{\"a\": {}}" + std::string(4000, '\x3f');
  const auto check = [](const std::string& content, TextFormat format) {
    return PreparePiped(content, format);
  };
  EXPECT_TRUE(check(text, TextFormat::kText).ok());
  EXPECT_TRUE(check(Gzipped(text), TextFormat::kText).ok());
  EXPECT_TRUE(check(Zstded(text), TextFormat::kText).ok());
  EXPECT_TRUE(check(records, TextFormat::kJsonl).ok());
  EXPECT_TRUE(Fails(check(weights, TextFormat::kText), kInvalid,
                    {"/dev/fd/", "safetensors"}));
  EXPECT_TRUE(Fails(check(weights, TextFormat::kJsonl), kInvalid,
                    {"/dev/fd/", "safetensors"}));
  EXPECT_TRUE(Fails(check(Gzipped(weights), TextFormat::kText), kInvalid,
                    {"safetensors"}));
  EXPECT_TRUE(Fails(check(records, TextFormat::kText), kInvalid,
                    {"JSON lines", "--format jsonl"}));
  // A zero byte behind the first read.
  EXPECT_TRUE(
      Fails(check(std::string(700'000, 'a') + std::string(1, '\0') + text,
                  TextFormat::kText),
            kInvalid, {"byte 700000 is zero"}));
  EXPECT_TRUE(PreparePiped(weights, TextFormat::kText, /*unpack=*/false).ok())
      << "--any-content";
}

}  // namespace
}  // namespace troupe
