#include "tests/equivalence/state_difference.h"

#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "proto/base/check.h"
#include "storage/checkpoint/tensor_reader.h"

namespace troupe {
namespace {

std::vector<float> ReadWhole(const TensorReader& reader,
                             const ManifestTensor& tensor) {
  std::vector<float> values(ElementCount(tensor.shape));
  CHECK_OK(reader.Read(tensor.name, StoredDType::kF32,
                       WholeTensor(tensor.shape), values.data()));
  return values;
}

struct Squares {
  double of_differences = 0;
  double of_wanted = 0;

  void Add(const std::vector<float>& got, const std::vector<float>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
      const double difference = double{got[i]} - double{want[i]};
      of_differences += difference * difference;
      of_wanted += double{want[i]} * double{want[i]};
    }
  }
  double Ratio() const { return std::sqrt(of_differences / of_wanted); }
};

}  // namespace

StateDifference CompareStates(const std::string& got, const std::string& want) {
  const auto first = TensorReader::Open(got);
  const auto second = TensorReader::Open(want);
  CHECK_OK(first.status());
  CHECK_OK(second.status());
  Squares weights;
  Squares moments;
  for (const ManifestTensor& tensor : (*second)->manifest().tensors) {
    const bool is_moment = absl::StartsWith(tensor.name, "optimizer.");
    (is_moment ? moments : weights)
        .Add(ReadWhole(**first, tensor), ReadWhole(**second, tensor));
  }
  return {.weights = weights.Ratio(), .moments = moments.Ratio()};
}

}  // namespace troupe
