#include "clients/job_file/suggest.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Suggest, FindsTheNearest) {
  const std::vector<std::string> fields = {"data", "bucket_megabytes",
                                           "tensor"};
  EXPECT_EQ(Suggest("dta", fields), "data");
  EXPECT_EQ(Suggest("Data", fields), "data");
  EXPECT_EQ(Suggest("tensors", fields), "tensor");
  EXPECT_EQ(Suggest("bucket_mb", fields), "");
  EXPECT_EQ(Suggest("zebras", fields), "");
  EXPECT_EQ(Suggest("", fields), "");
  EXPECT_EQ(Suggest(std::string(1000, 'd'), fields), "");
}

TEST(Suggest, KnowsWhatOtherToolsCallIt) {
  const std::vector<std::string> fields = {"num_hidden_layers", "hidden_size"};
  EXPECT_EQ(Suggest("n_layer", fields), "num_hidden_layers");
  EXPECT_EQ(Suggest("n_embd", fields), "hidden_size");
  EXPECT_EQ(Suggest("learning_rate", fields), "");
  EXPECT_EQ(OurName("learning_rate"), "lr");
  EXPECT_EQ(OurName("lr"), "lr");
}

// Replicas are the job's; what a strategy has for some units is batch.
TEST(Suggest, SaysBatchForDataWhereThereIsOnlyThat) {
  const std::vector<std::string> strategy = {"units", "batch", "tensor"};
  EXPECT_EQ(Suggest("data", strategy), "batch");
  EXPECT_EQ(Suggest("data", {"data", "batch"}), "data");
  EXPECT_EQ(Suggest("data", {"steps"}), "");
  EXPECT_EQ(OurName("data"), "data");
}

}  // namespace
}  // namespace troupe
