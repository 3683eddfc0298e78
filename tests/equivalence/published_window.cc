#include "tests/equivalence/published_window.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/config.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {

PublishedWindow PublishedWindowOf(const std::string& name) {
  const std::string directory = absl::StrCat("tests/oracle/hf/", name);
  const nlohmann::json expected =
      nlohmann::json::parse(std::ifstream(directory + "/expected.json"));
  const auto ids = expected.at("ids").get<std::vector<int32_t>>();
  const auto model = ReadHuggingFaceConfig(directory);
  CHECK_OK(model.status());
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", name, ".tokens");
  std::filesystem::remove(path);
  auto writer = TokenFileWriter::Create(
      {.path = path,
       .vocab_size = static_cast<uint64_t>(model->vocab_size()),
       .tokenizer = "none"});
  CHECK_OK(writer.status());
  CHECK_OK((*writer)->Append(ids));
  CHECK_OK((*writer)->Finish().status());
  PublishedWindow window;
  window.targets = static_cast<int>(ids.size()) - 1;
  window.loss = expected.at("loss_float64").get<double>();
  JobSpec& job = window.job;
  job.set_name("evaluation");
  job.set_evaluate(true);
  *job.mutable_model() = *model;
  job.mutable_data()->set_validation(path);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1);
  training.set_global_batch_size(2);
  training.set_micro_batch_size(1);
  training.set_sequence_length(window.targets);
  job.mutable_parallelism()->set_data(2);
  return window;
}

}  // namespace troupe
