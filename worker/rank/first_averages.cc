#include "worker/rank/first_averages.h"

#include <cstddef>
#include <cstdint>
#include <map>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "worker/rank/stored_f32.h"
#include "worker/rank/windows.h"

namespace troupe {
namespace {

absl::Status Copy(const StateTensor& weight, const StateTensor& average,
                  TierPort& port) {
  const int64_t whole = ElementCount(average.shape);
  const std::vector<SliceRun> from = RunsWithin(weight, 0, whole);
  const std::vector<SliceRun> to = RunsWithin(average, 0, whole);
  CHECK_EQ(from.size(), to.size()) << weight.name;
  std::vector<char> host = WindowOf(average.elements);
  float* const values = reinterpret_cast<float*>(host.data());
  for (size_t run = 0; run < to.size(); ++run) {
    const auto at = [run](const StateTensor& tensor,
                          const std::vector<SliceRun>& runs, int64_t done,
                          int64_t count) {
      return tensor.At({.local = runs[run].local + done, .count = count});
    };
    RETURN_IF_ERROR(InWindows(
        to[run].count, [&](int64_t done, int64_t count) -> absl::Status {
          RETURN_IF_ERROR(ReadF32(port, at(weight, from, done, count), values));
          RETURN_IF_ERROR(port.Settle());
          RETURN_IF_ERROR(WriteF32(port, at(average, to, done, count), values));
          return port.Settle();
        }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BeginAverages(
    const std::vector<StateTensor>& tensors, TierPort& port,
    absl::FunctionRef<bool(absl::string_view name)> begins) {
  std::map<absl::string_view, const StateTensor*> weights;
  for (const StateTensor& tensor : tensors) weights[tensor.name] = &tensor;
  for (const StateTensor& average : tensors) {
    const absl::string_view name = BeginsAsParameter(average.name);
    if (name.empty() || !begins(average.name)) continue;
    const auto weight = weights.find(name);
    CHECK(weight != weights.end()) << average.name << " is of no weight";
    RETURN_IF_ERROR(Copy(*weight->second, average, port));
  }
  return absl::OkStatus();
}

}  // namespace troupe
