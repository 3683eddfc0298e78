#include "clients/cli/model_tokenizer.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/manifest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kDirectory[] = "tests/oracle/hf/gpt2_tiny";
constexpr char kBosConfig[] = R"({"add_bos_token": true, "bos_token": ")";

// A checkpoint without weights that carries these files.
std::string CheckpointWith(const TempDir& dir, const std::string& tokenizer,
                           const std::vector<CarriedFile>& files) {
  std::string path = dir.File("step-00000001");
  std::filesystem::create_directories(path);
  Manifest manifest;
  manifest.step = 1;
  manifest.job = "{}";
  manifest.tokenizer = tokenizer;
  manifest.assets = DescribeCarriedFiles(files);
  CHECK_OK(WriteCarriedFiles(path, files));
  WriteText(path + "/manifest.json", FormatManifest(manifest));
  return path;
}

TEST(ModelTokenizer, OfADirectoryIsItsOwn) {
  const auto opened = OpenModelTokenizer({.model = kDirectory});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->tokenizer->name(), HasSubstr("hf:"));
  EXPECT_FALSE(opened->bos.adds);
}

TEST(ModelTokenizer, OfACheckpointIsTheOneThatItCarries) {
  const TempDir dir;
  const auto bytes =
      OpenModelTokenizer({.model = CheckpointWith(dir, "bytes", {})});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->tokenizer->name(), "bytes");

  const TempDir carrying;
  const std::string json =
      ReadText(absl::StrCat(kDirectory, "/tokenizer.json"));
  const auto own = OpenModelTokenizer({.model = kDirectory});
  ASSERT_TRUE(own.ok()) << own.status();
  const auto carried = OpenModelTokenizer(
      {.model = CheckpointWith(carrying, own->tokenizer->name(),
                               {{.name = "tokenizer.json", .bytes = json}})});
  ASSERT_TRUE(carried.ok()) << carried.status();
  EXPECT_EQ(carried->tokenizer->name(), own->tokenizer->name());
}

TEST(ModelTokenizer, SaysWhatIsMissing) {
  const TempDir dir;
  for (const std::string& model : {dir.path(), CheckpointWith(dir, "", {})}) {
    EXPECT_TRUE(Fails(OpenModelTokenizer({.model = model}).status(),
                      absl::StatusCode::kNotFound, {"by --tokenizer"}))
        << model;
    const auto given =
        OpenModelTokenizer({.model = model, .tokenizer = kDirectory});
    EXPECT_TRUE(given.ok()) << given.status();
  }
  EXPECT_TRUE(
      Fails(OpenModelTokenizer(
                {.model = dir.path(), .tokenizer = "bytes", .adds_bos = true})
                .status(),
            absl::StatusCode::kInvalidArgument,
            {"--bos: bytes: the tokenizer bytes has no BOS token"}));
}

// A caller that leaves BOS out does not depend on the model's rule.
TEST(ModelTokenizer, DamageIsAnErrorWhereItMatters) {
  const TempDir dir;
  std::filesystem::copy(absl::StrCat(kDirectory, "/tokenizer.json"),
                        dir.File("tokenizer.json"));
  WriteText(dir.File("tokenizer_config.json"),
            absl::StrCat(kBosConfig, "no such token\"}"));
  EXPECT_TRUE(Fails(OpenModelTokenizer({.model = dir.path()}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"bos_token: \"no such token\"", "--no-bos"}));
  const auto without =
      OpenModelTokenizer({.model = dir.path(), .adds_bos = false});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->bos.adds);
}

}  // namespace
}  // namespace troupe
