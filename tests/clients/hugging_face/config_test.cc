#include "clients/hugging_face/config.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "storage/disk/roots.h"
#include "storage/engine/posix_file.h"
#include "tests/clients/hugging_face/round_trip.h"

namespace troupe {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

// Directories that transformers wrote (tests/oracle/make_hf_fixtures.py).
absl::StatusOr<ModelSpec> ReadFixture(const std::string& name) {
  return ReadHuggingFaceConfig(absl::StrCat("tests/oracle/hf/", name));
}

constexpr char kLlama[] = R"({
  "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 256,
  "max_position_embeddings": 128, "hidden_act": "silu"})";

TEST(HuggingFaceConfig, ReadsWhatTransformersWrites) {
  for (const char* name :
       {"gpt2_tiny", "gpt2_bare", "llama_tiny", "llama_tied_bf16_sharded",
        "mistral_tiny", "qwen2_tiny", "gpt_neox_tiny", "qwen3_tiny",
        "mixtral_tiny", "qwen2_moe_tiny", "qwen3_moe_tiny", "olmoe_tiny",
        "deepseek_v3_tiny"}) {
    SCOPED_TRACE(name);
    const absl::StatusOr<ModelSpec> model = ReadFixture(name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->hf(), absl::StrCat("tests/oracle/hf/", name));
    EXPECT_GT(model->num_hidden_layers(), 0);
    EXPECT_GT(model->vocab_size(), 0);
    EXPECT_TRUE(absl::StartsWith(name, model->architecture() + "_"))
        << model->architecture();
  }
  EXPECT_TRUE(ReadFixture("llama_tied_bf16_sharded")->tie_word_embeddings());
  EXPECT_FALSE(ReadFixture("llama_tiny")->tie_word_embeddings());
  EXPECT_EQ(ReadFixture("mistral_tiny")->sliding_window(), 48);
}

TEST(HuggingFaceConfig, WrittenIsRead) {
  for (const char* name :
       {"gpt2_tiny", "llama_tiny", "mistral_tiny", "qwen2_tiny",
        "gpt_neox_tiny", "qwen3_tiny", "mixtral_tiny", "qwen2_moe_tiny",
        "qwen3_moe_tiny", "olmoe_tiny", "deepseek_v3_tiny"}) {
    SCOPED_TRACE(name);
    ModelSpec model = *ReadFixture(name);
    if (!model.has_intermediate_size()) {
      model.set_intermediate_size(4 * model.hidden_size());
    }
    if ((absl::StartsWith(model.architecture(), "qwen2") ||
         model.architecture() == "olmoe") &&
        !model.has_head_dim()) {
      model.set_head_dim(4);
    }
    const std::string written =
        FormatHuggingFaceConfig({.model = model, .dtype = "float32"});
    auto read = ParseHuggingFaceConfig(written, "written");
    ASSERT_TRUE(read.ok()) << read.status();
    read->set_hf(model.hf());
    EXPECT_TRUE(MessageDifferencer::Equals(*read, model))
        << read->ShortDebugString() << "\n"
        << model.ShortDebugString();
  }
}

TEST(HuggingFaceConfig, KeepsWhatItDoesNotKnow) {
  const std::string written = FormatHuggingFaceConfig(
      {.model = *ReadFixture("llama_tiny"),
       .dtype = "bfloat16",
       .base = R"({"eos_token_id": 7, "torch_dtype": "float32", "x": [1]})"});
  EXPECT_THAT(written, HasSubstr("\"eos_token_id\": 7"));
  EXPECT_THAT(written, HasSubstr("\"x\": ["));
  EXPECT_THAT(written, HasSubstr("\"dtype\": \"bfloat16\""));
  EXPECT_THAT(written, HasSubstr("\"torch_dtype\": \"bfloat16\""));
}

// As Python's json module writes and reads it.
TEST(HuggingFaceConfig, NumbersThatOnlyPythonKnows) {
  const std::string with_infinity = absl::StrReplaceAll(
      kLlama, {{"\"hidden_act\"",
                "\"time_step_limit\": [0.0, Infinity, -Infinity, NaN], "
                "\"name\": \"an Infinity \\\" NaN\", \"hidden_act\""}});
  const auto model = ParseHuggingFaceConfig(with_infinity, "c");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string written =
      FormatHuggingFaceConfig({.model = *ReadFixture("llama_tiny"),
                               .dtype = "float32",
                               .base = with_infinity});
  EXPECT_THAT(absl::StrReplaceAll(written, {{"\n", ""}, {" ", ""}}),
              HasSubstr("\"time_step_limit\":[0.0,Infinity,-Infinity,NaN]"));
  EXPECT_THAT(written, HasSubstr("\"an Infinity \\\" NaN\""));
  EXPECT_EQ(ParseHuggingFaceConfig(
                absl::StrReplaceAll(kLlama, {{"\"vocab_size\"",
                                              "\"rope_theta\": Infinity, "
                                              "\"vocab_size\""}}),
                "c")
                .status()
                .message(),
            "c: rope_theta: is no finite number");
}

TEST(HuggingFaceConfig, WhatIsNoJsonIsNamedByItsByte) {
  EXPECT_EQ(ParseHuggingFaceConfig("{\"a\": Infinite}", "c").status().message(),
            "c: not JSON at byte 7");
  EXPECT_EQ(
      ParseHuggingFaceConfig("{\"a\": NaN, \"a\": 1}", "c").status().message(),
      "c: \"a\" is there twice");
}

// A cache's snapshot is links into blobs/ beside it.
TEST(HuggingFaceConfig, ALinkOutOfTheRootIsTheCause) {
  const std::string cache = FreshPath("cache");
  const std::string snapshot = cache + "/snapshots/1";
  std::filesystem::create_directories(snapshot);
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(absl::StrCat(HfFixture("llama_tiny"), "/", file),
                          cache);
    std::filesystem::create_symlink(absl::StrCat("../../", file),
                                    absl::StrCat(snapshot, "/", file));
  }
  const auto roots = Roots::Install({"hub=" + cache + "/snapshots"});
  ASSERT_TRUE(roots.ok()) << roots.status();
  for (const absl::Status& status :
       {ReadHuggingFaceConfig("hub:1").status(),
        HuggingFaceWeights::Open("hub:1").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("leads out of its root"));
  }
}

// kLlama as another model type, with more keys.
absl::StatusOr<ModelSpec> Relative(const std::string& type,
                                   const std::string& keys) {
  return ParseHuggingFaceConfig(
      absl::StrReplaceAll(kLlama,
                          {{"\"llama\"", absl::StrCat("\"", type, "\"")},
                           {"\"vocab_size\"", keys + ", \"vocab_size\""}}),
      "r");
}

// DeepSeek's config, of which a value is changed, or a key.
std::string MessageOfDeepseek(const std::string& from, const std::string& to) {
  std::string text =
      *ReadWholeFile("tests/oracle/hf/deepseek_v3_tiny/config.json", 1 << 20);
  EXPECT_THAT(text, HasSubstr(from));
  text = absl::StrReplaceAll(text, {{from, to}});
  return std::string(ParseHuggingFaceConfig(text, "d").status().message());
}

TEST(HuggingFaceConfig, DeepseekV3IsRefusedWhereItIsAnotherNetwork) {
  EXPECT_THAT(MessageOfDeepseek("\"num_key_value_heads\": 4",
                                "\"num_key_value_heads\": 2"),
              HasSubstr("d: num_key_value_heads: is 2, but"));
  EXPECT_THAT(MessageOfDeepseek("\"scoring_func\": \"sigmoid\"",
                                "\"scoring_func\": \"softmax\""),
              HasSubstr("d: scoring_func: "));
  EXPECT_THAT(MessageOfDeepseek("\"n_routed_experts\": 8",
                                "\"n_routed_experts\": 8, "
                                "\"num_local_experts\": 6"),
              HasSubstr("d: n_routed_experts: is 8, but num_local_experts 6"));
  EXPECT_THAT(
      MessageOfDeepseek("\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2"),
      HasSubstr("d: moe_layer_freq: layers without experts"));
}

TEST(HuggingFaceConfig, NoLatentsOfQueriesAreNull) {
  std::string text =
      *ReadWholeFile("tests/oracle/hf/deepseek_v3_tiny/config.json", 1 << 20);
  text = absl::StrReplaceAll(
      text, {{"\"q_lora_rank\": 12", "\"q_lora_rank\": null"}});
  const auto model = ParseHuggingFaceConfig(text, "d");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->has_q_lora_rank());
  EXPECT_EQ(model->q_lora_rank(), 0);
  EXPECT_THAT(FormatHuggingFaceConfig({.model = *model, .dtype = "float32"}),
              HasSubstr("\"q_lora_rank\": null"));
}

TEST(HuggingFaceConfig, ClippedProjectionsAreRefused) {
  EXPECT_EQ(Relative("olmoe", "\"clip_qkv\": 8.0").status().message(),
            "r: clip_qkv: queries, keys and values that are clipped are not "
            "supported; set it to null");
}

TEST(HuggingFaceConfig, MistralsWindowIsOfTheModel) {
  const std::string heads = "\"num_key_value_heads\": 2";
  const auto none = Relative("mistral", heads + ", \"sliding_window\": null");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->architecture(), "mistral");
  EXPECT_FALSE(none->has_sliding_window());
  EXPECT_EQ(
      Relative("mistral", heads + ", \"sliding_window\": 64")->sliding_window(),
      64);
  // What transformers takes for absent keys.
  EXPECT_EQ(Relative("mistral", heads)->sliding_window(), 4096);
  EXPECT_EQ(Relative("mistral", "\"sliding_window\": 64").status().message(),
            "r: num_key_value_heads: is missing");
  const std::string written =
      FormatHuggingFaceConfig({.model = *none, .dtype = "float32"});
  EXPECT_THAT(written, HasSubstr("\"sliding_window\": null"));
  EXPECT_THAT(written, HasSubstr("\"MistralForCausalLM\""));
  EXPECT_THAT(
      std::string(ParseHuggingFaceConfig(
                      absl::StrReplaceAll(kLlama, {{"\"vocab_size\"",
                                                    "\"sliding_window\": 64, "
                                                    "\"vocab_size\""}}),
                      "l")
                      .status()
                      .message()),
      HasSubstr("l: sliding_window"));
}

// Of 128 positions and two layers.
TEST(HuggingFaceConfig, QwensWindowsAreRefusedUnlessTheyChangeNothing) {
  const std::string heads = "\"num_key_value_heads\": 2, ";
  for (const char* keys : {
           "\"use_sliding_window\": false, \"sliding_window\": 64",
           "\"use_sliding_window\": true",
           "\"use_sliding_window\": true, \"sliding_window\": null, "
           "\"max_window_layers\": 0",
           "\"use_sliding_window\": true, \"sliding_window\": 128, "
           "\"max_window_layers\": 0",
           "\"use_sliding_window\": true, \"sliding_window\": 64, "
           "\"max_window_layers\": 2",
           "\"use_sliding_window\": true, \"sliding_window\": 64, "
           "\"layer_types\": [\"full_attention\", \"full_attention\"]",
       }) {
    const auto model = Relative("qwen2", heads + keys);
    EXPECT_TRUE(model.ok()) << model.status();
  }
  for (const char* keys : {
           "\"use_sliding_window\": true, \"sliding_window\": 64, "
           "\"max_window_layers\": 1",
           "\"use_sliding_window\": true, \"sliding_window\": 64, "
           "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
       }) {
    EXPECT_THAT(
        std::string(Relative("qwen2", heads + keys).status().message()),
        HasSubstr("r: use_sliding_window: attention within a window is not"))
        << keys;
  }
  EXPECT_THAT(
      std::string(Relative("qwen2", heads + "\"layer_types\": [\"chunked\"]")
                      .status()
                      .message()),
      HasSubstr("r: layer_types: 'chunked' is not supported"));
}

TEST(HuggingFaceConfig, Qwen3HasNoBiases) {
  const std::string heads = "\"num_key_value_heads\": 2, ";
  const auto model = Relative("qwen3", heads + "\"attention_bias\": false");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(model->has_head_dim());  // 128 by default, here as there
  EXPECT_EQ(
      Relative("qwen3", heads + "\"attention_bias\": true").status().message(),
      "r: attention_bias: true is not supported");
}

TEST(HuggingFaceConfig, RefusesOtherNetworks) {
  const std::pair<const char*, const char*> changes[] = {
      {"\"llama\"", "\"bert\""},
      {"\"silu\"", "\"relu\""},
      {"\"vocab_size\": 256", "\"vocab_size\": -1"},
      {"\"vocab_size\": 256", "\"vocab\": 256"},
      {"\"hidden_size\": 64", "\"hidden_size\": \"64\""},
      {"\"hidden_act\"", "\"quantization_config\": {}, \"hidden_act\""},
  };
  ASSERT_TRUE(ParseHuggingFaceConfig(kLlama, "c").ok());
  for (const auto& [from, to] : changes) {
    const auto model =
        ParseHuggingFaceConfig(absl::StrReplaceAll(kLlama, {{from, to}}), "c");
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << to;
    EXPECT_THAT(model.status().message(), HasSubstr("c: "));
  }
  for (const char* text : {"", "[]", "{", "3", "{\"model_type\": 2}"}) {
    EXPECT_FALSE(ParseHuggingFaceConfig(text, "c").ok()) << text;
  }
}

TEST(HuggingFaceConfig, AnAbsentDirectorySaysWhatToGive) {
  EXPECT_EQ(
      ReadHuggingFaceConfig("/nowhere").status().message(),
      "/nowhere/config.json: open: ENOENT: no such file or directory; give a "
      "Hugging Face model's directory");
}

}  // namespace
}  // namespace troupe
