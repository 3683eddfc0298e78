#include "clients/job_file/scalar_value.h"

#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace troupe {
namespace {

// What becomes of `text` in a field; "" where it is accepted.
std::string Refusal(const char* field, const std::string& text,
                    google::protobuf::Message& message) {
  const YamlNode node = ParseYaml(text, YamlSource{"f"}).value();
  return std::string(
      SetScalar(node, *message.GetDescriptor()->FindFieldByName(field), message)
          .message());
}

TEST(ScalarValue, Integers) {
  TrainingSpec training;
  EXPECT_EQ(Refusal("steps", "200", training), "");
  EXPECT_EQ(training.steps(), 200);
  EXPECT_EQ(Refusal("steps", "-3", training), "");
  EXPECT_EQ(training.steps(), -3);
  EXPECT_EQ(Refusal("seed", "18446744073709551615", training), "");
  EXPECT_EQ(training.seed(), ~uint64_t{0});
  EXPECT_EQ(Refusal("seed", "-1", training),
            "expected an integer from 0 on, found the number -1");
  EXPECT_EQ(Refusal("micro_batch_size", "2147483648", training),
            "expected an integer up to 2147483647, found the number "
            "2147483648");
  EXPECT_EQ(Refusal("micro_batch_size", "-2147483649", training),
            "expected an integer from 0 on, found the number -2147483649");
  EXPECT_EQ(Refusal("steps", "99999999999999999999", training),
            "expected an integer up to 9223372036854775807, found the number "
            "99999999999999999999");
  EXPECT_EQ(Refusal("steps", "3.5", training),
            "expected an integer, found the number 3.5");
  EXPECT_EQ(Refusal("steps", "1e3", training),
            "expected an integer, found the number 1e3");
  EXPECT_EQ(Refusal("steps", "\"200\"", training),
            "expected an integer, found the text \"200\"");
  EXPECT_EQ(Refusal("steps", "[1]", training),
            "expected an integer, found a list");
  EXPECT_EQ(Refusal("steps", "~", training),
            "expected an integer, found nothing");
}

TEST(ScalarValue, Doubles) {
  TrainingSpec training;
  EXPECT_EQ(Refusal("dropout", "1.0e-8", training), "");
  EXPECT_EQ(training.dropout(), 1.0e-8);
  EXPECT_EQ(Refusal("dropout", "1", training), "");
  EXPECT_EQ(training.dropout(), 1.0);
  for (const char* text : {"nan", "inf", "-inf", "1e400"}) {
    EXPECT_EQ(Refusal("dropout", text, training).substr(0, 24),
              "expected a finite number")
        << text;
  }
  for (const char* text : {".nan", ".inf", "0.1x", "\"0.1\"", "{a: 1}"}) {
    EXPECT_EQ(Refusal("dropout", text, training).substr(0, 17),
              "expected a number")
        << text;
  }
}

TEST(ScalarValue, BoolsAndTexts) {
  ModelSpec model;
  EXPECT_EQ(Refusal("tie_word_embeddings", "false", model), "");
  EXPECT_TRUE(model.has_tie_word_embeddings());
  EXPECT_FALSE(model.tie_word_embeddings());
  EXPECT_EQ(Refusal("tie_word_embeddings", "True", model), "");
  EXPECT_TRUE(model.tie_word_embeddings());
  EXPECT_EQ(Refusal("tie_word_embeddings", "yes", model),
            "expected true or false, found the text \"yes\"");
  EXPECT_EQ(Refusal("tie_word_embeddings", "1", model),
            "expected true or false, found the number 1");
  EXPECT_EQ(Refusal("architecture", "gpt2", model), "");
  EXPECT_EQ(model.architecture(), "gpt2");
  EXPECT_EQ(Refusal("architecture", "[gpt2]", model),
            "expected a text, found a list");
}

TEST(ScalarValue, AppendsToLists) {
  OptimizerSpec optimizer;
  EXPECT_EQ(Refusal("betas", "0.9", optimizer), "");
  EXPECT_EQ(Refusal("betas", "0.95", optimizer), "");
  ASSERT_EQ(optimizer.betas_size(), 2);
  EXPECT_EQ(optimizer.betas(1), 0.95);
}

}  // namespace
}  // namespace troupe
