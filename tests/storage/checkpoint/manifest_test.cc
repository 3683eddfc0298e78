#include "storage/checkpoint/manifest.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

Manifest Example() {
  Manifest m;
  m.job_name = "demo";
  m.step = 50;
  m.samples_consumed = 1600;
  m.seed = 18446744073709551615u;
  m.plan_fingerprint = "00ff";
  m.job = "{\"name\": \"demo\"}";
  m.tokenizer = "bytes";
  m.created = absl::FromUnixNanos(1'700'000'000'123'456'789);
  m.files = {{"rank-00001.safetensors", 300, 0xabc},
             {"rank-00000.safetensors", 200, 0xdeadbeef}};
  m.assets = {{"tokenizer.model", 7, 0xfeed}};
  m.tensors = {{"transformer.wte.weight",
                StoredDType::kF32,
                {4, 6},
                {{"rank-00001.safetensors", "wte", {{2, 0}, {2, 6}}},
                 {"rank-00000.safetensors", "wte", {{0, 0}, {2, 6}}}}},
               {"optimizer.step",
                StoredDType::kI64,
                {},
                {{"rank-00000.safetensors", "step", {{}, {}}}}}};
  return m;
}

TEST(Manifest, ComesBackAsItWas) {
  const std::string text = FormatManifest(Example());
  const auto parsed = ParseManifest(text, "m");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(FormatManifest(*parsed), text);
  EXPECT_EQ(parsed->job_name, "demo");
  EXPECT_EQ(parsed->step, 50);
  EXPECT_EQ(parsed->samples_consumed, 1600u);
  EXPECT_EQ(parsed->seed, 18446744073709551615u);
  EXPECT_EQ(parsed->plan_fingerprint, "00ff");
  EXPECT_EQ(parsed->job, "{\"name\": \"demo\"}");
  EXPECT_EQ(parsed->tokenizer, "bytes");
  EXPECT_EQ(parsed->created, Example().created);
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].name, "optimizer.step");
  EXPECT_EQ(parsed->tensors[0].dtype, StoredDType::kI64);
  EXPECT_EQ(parsed->tensors[1].shards[1].box, (TensorBox{{2, 0}, {2, 6}}));
  EXPECT_EQ(parsed->files[0].crc32c, 0xdeadbeefu);
  ASSERT_EQ(parsed->assets.size(), 1u);
  EXPECT_EQ(parsed->assets[0].name, "tokenizer.model");
  EXPECT_EQ(parsed->assets[0].crc32c, 0xfeedu);
}

TEST(Manifest, SaysWhetherTheTokensWereChecked) {
  Manifest manifest = Example();
  EXPECT_FALSE(ParseManifest(FormatManifest(manifest), "m")->data_unchecked);
  manifest.data_unchecked = true;
  EXPECT_TRUE(ParseManifest(FormatManifest(manifest), "m")->data_unchecked);
}

TEST(Manifest, KeepsTheScaleOfTheLoss) {
  Manifest manifest = Example();
  EXPECT_EQ(ParseManifest(FormatManifest(manifest), "m")->loss_scale.scale, 0);
  manifest.loss_scale = {
      .scale = 0x1p-3, .good_steps = 1999, .skipped_steps = 2};
  manifest.step = 2;
  const absl::StatusOr<Manifest> back =
      ParseManifest(FormatManifest(manifest), "m");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->loss_scale.scale, 0x1p-3);
  EXPECT_EQ(back->loss_scale.good_steps, 1999);
  EXPECT_EQ(back->loss_scale.skipped_steps, 2);
  manifest.step = 1;
  EXPECT_EQ(ParseManifest(FormatManifest(manifest), "m").status().message(),
            "m: \"loss_scale\": 2 skipped of 1 steps");
}

TEST(Manifest, OneFromBeforeThereWereAssetsIsRead) {
  std::string text = FormatManifest(Example());
  const size_t at = text.find("\"assets\"");
  const size_t crc = text.find("\"manifest_crc32c\"");
  ASSERT_LT(at, crc);
  text.erase(at, crc - at);
  const std::string sum =
      absl::StrCat(absl::Hex(Crc32c(text.substr(0, at)), absl::kZeroPad8));
  text.replace(text.rfind('"') - 8, 8, sum);
  const auto parsed = ParseManifest(text, "m");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->files.size(), 2u);
  EXPECT_TRUE(parsed->assets.empty());
}

TEST(Manifest, TextDoesNotDependOnTheOrderOfArrival) {
  Manifest other = Example();
  std::reverse(other.files.begin(), other.files.end());
  std::reverse(other.tensors.begin(), other.tensors.end());
  std::reverse(other.tensors[1].shards.begin(), other.tensors[1].shards.end());
  EXPECT_EQ(FormatManifest(other), FormatManifest(Example()));
}

TEST(Manifest, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string text = FormatManifest(Example());
  // The closing brace and the line's end carry nothing.
  const size_t meaningful = text.rfind('"') + 1;
  for (size_t bytes = 0; bytes < meaningful; ++bytes) {
    EXPECT_TRUE(Fails(ParseManifest(text.substr(0, bytes), "m").status(),
                      absl::StatusCode::kDataLoss, {"m: "}))
        << bytes;
  }
  for (size_t at = 0; at < meaningful; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(ParseManifest(flipped, "m").ok()) << at << " " << bit;
    }
  }
}

TEST(Manifest, ChecksWhatItClaims) {
  const auto error = [](const std::function<void(Manifest&)>& damage) {
    Manifest m = Example();
    damage(m);
    return CheckManifest(m);
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(CheckManifest(Example()).ok());
  EXPECT_TRUE(Fails(error([](Manifest& m) { m.tensors[0].shards.pop_back(); }),
                    kInvalid,
                    {"tensor transformer.wte.weight: shards hold 12 of the "
                     "24 elements"}));
  EXPECT_TRUE(
      Fails(error([](Manifest& m) { m.tensors[0].shards[0].box.start[0] = 1; }),
            kInvalid, {"overlap"}));
  EXPECT_TRUE(Fails(error([](Manifest& m) { m.files.pop_back(); }), kInvalid,
                    {"rank-00000.safetensors is not among the files"}));
  EXPECT_TRUE(
      Fails(error([](Manifest& m) { m.tensors.push_back(m.tensors[0]); }),
            kInvalid, {"tensor transformer.wte.weight is there twice"}));
  EXPECT_TRUE(Fails(error([](Manifest& m) { m.files.push_back(m.files[0]); }),
                    kInvalid, {"file rank-00001.safetensors is there twice"}));
  EXPECT_TRUE(Fails(error([](Manifest& m) {
                      m.files.push_back({"../secret", 1, 1});
                    }),
                    kInvalid, {"\"../secret\" is no name"}));
  EXPECT_TRUE(Fails(error([](Manifest& m) {
                      m.assets.push_back({"../secret", 1, 1});
                    }),
                    kInvalid, {"assets: \"../secret\" is no name"}));
  EXPECT_TRUE(
      Fails(error([](Manifest& m) { m.tensors[1].shards[0].key = "wte"; }),
            kInvalid, {"wte of rank-00000.safetensors is used twice"}));
}

TEST(Manifest, NumbersThatNoTrainingReachesAreRefused) {
  Manifest m = Example();
  m.samples_consumed = uint64_t{1} << 62;
  EXPECT_TRUE(ParseManifest(FormatManifest(m), "m").ok());
  m.samples_consumed += 1;
  EXPECT_TRUE(Fails(ParseManifest(FormatManifest(m), "m").status(),
                    absl::StatusCode::kDataLoss, {"\"samples_consumed\""}));
  m = Example();
  m.step = (int64_t{1} << 62) + 1;
  EXPECT_TRUE(Fails(ParseManifest(FormatManifest(m), "m").status(),
                    absl::StatusCode::kDataLoss, {"\"step\""}));
}

TEST(Manifest, ReadsTheFile) {
  TempDir dir;
  EXPECT_TRUE(Fails(ReadManifest(dir.path()).status(),
                    absl::StatusCode::kNotFound, {"manifest.json"}));
  WriteText(dir.File("manifest.json"), FormatManifest(Example()));
  EXPECT_TRUE(ReadManifest(dir.path()).ok());
  WriteText(dir.File("manifest.json"), "");
  EXPECT_TRUE(Fails(ReadManifest(dir.path()).status(),
                    absl::StatusCode::kDataLoss,
                    {dir.File("manifest.json"), "truncated"}));
}

}  // namespace
}  // namespace troupe
