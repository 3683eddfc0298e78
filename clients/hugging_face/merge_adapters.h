// Adds adapters (training.lora) to the weights beside which they were trained:
// W + scale B A, of which a model without adapters computes the same.
//
//   MergedWeights merged(units, lora, checkpoint);
//   RETURN_IF_ERROR(merged.ReadRange("model.layers.0.mlp.up_proj.weight",
//                                    {.begin = 0, .count = n}, out));
#ifndef TROUPE_CLIENTS_HUGGING_FACE_MERGE_ADAPTERS_H_
#define TROUPE_CLIENTS_HUGGING_FACE_MERGE_ADAPTERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"
#include "storage/checkpoint/tensor_box.h"
#include "storage/checkpoint/tensor_reader.h"

namespace troupe {

// Borrows the checkpoint, which has all parameters of the units, in F32.
class MergedWeights {
 public:
  // `units` are the model's with its adapters.
  MergedWeights(const UnitList& units, const LoraSpec& lora,
                const TensorReader& checkpoint);

  // Elements of the flattened tensor. Those of a weight with an adapter are the
  // sum, computed in double and rounded once; others are as stored. Keeps the
  // adapter that it used last in memory. Errors of TensorReader::ReadRange.
  absl::Status ReadRange(const std::string& name, const FlatRange& range,
                         float* out);

 private:
  struct Adapter {
    std::string down;  // A, [rank, in]
    std::string up;    // B, [out, rank]
    int64_t rank = 0;
    int64_t in = 0;
    int64_t out = 0;
    bool in_out = false;  // the weight is [in, out], else [out, in]
  };
  absl::Status Load(const std::string& name, const Adapter& adapter);

  const TensorReader& checkpoint_;
  const double scale_;
  std::map<std::string, Adapter> adapters_;  // by the weight's name
  // Of the weight `loaded_`: its change is rows_ times columns_.
  std::string loaded_;
  std::vector<float> rows_;     // [rows of the weight, rank]
  std::vector<float> columns_;  // [rank, columns of the weight]
  std::vector<double> sum_;     // scratch, of a row
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_MERGE_ADAPTERS_H_
