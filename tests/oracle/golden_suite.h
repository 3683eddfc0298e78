// One rank against PyTorch in float64: the tests that the golden file of every
// architecture passes. Norm-wise relative errors of the logits, the loss, every
// gradient, and the weights after a few AdamW steps with clipping.
//
//   INSTANTIATE_TEST_SUITE_P(Gpt2, GoldenSuite,
//                            testing::Values("gpt2_tied"), GoldenFileName);
#ifndef TROUPE_TESTS_ORACLE_GOLDEN_SUITE_H_
#define TROUPE_TESTS_ORACLE_GOLDEN_SUITE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ops/device.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "tests/oracle/golden_file.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {

// The parameter: a file of tests/oracle, without its ending; with "@N" behind it
// the loss is computed for N tokens at a time.
class GoldenSuite : public testing::TestWithParam<std::string> {
 protected:
  GoldenSuite();

  // Of parameters, Hugging Face's names: of all, and of those that the file's
  // job trains, or has frozen.
  std::vector<std::string> ParameterNames() const;
  std::vector<std::string> TrainedNames() const;
  std::vector<std::string> FrozenNames() const;
  // Tokens, then targets, of the step'th batch; the first is 1.
  const int32_t* Batch(int64_t step) const;
  // How many of its targets count; -1 does not.
  int64_t Counted(int64_t step) const;
  MicroBatchContext Training(int64_t step) const;
  // What modules' losses add up to in that step, which is then forgotten.
  void ExpectAddedLoss(int64_t step);

  const int64_t loss_chunk_tokens_;  // 0: of all at once
  const GoldenFile golden_;
  const LoraSpec lora_;  // empty, where no adapters are trained
  std::unique_ptr<Device> device_;
  ModelRunner runner_;  // with the file's initial weights
  std::vector<int32_t> batches_;

 private:
  std::vector<std::string> Names(bool frozen) const;
};

inline std::string GoldenFileName(
    const testing::TestParamInfo<std::string>& info) {
  return absl::StrReplaceAll(info.param, {{"@", "_in_chunks_of_"}});
}

}  // namespace troupe

#endif  // TROUPE_TESTS_ORACLE_GOLDEN_SUITE_H_
