// One op with memory of its own for every value and every gradient: what the
// tests of the kinds of layers drive. Values and gradients are read and written
// as f32, whatever the op computes in.
#ifndef TROUPE_TESTS_WORKER_LAYERS_ONE_OP_H_
#define TROUPE_TESTS_WORKER_LAYERS_ONE_OP_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ops/device.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/sums.h"
#include "proto/unit.pb.h"
#include "tests/worker/model/numeric.h"
#include "worker/layers/layer.h"

namespace troupe {

// A row of the table of kinds.
struct OneOpSpec {
  struct Operand {
    std::string name;
    std::vector<Dim> dims;
    // Unspecified: an activation, of the precision of the test.
    ElementType dtype = ELEMENT_TYPE_UNSPECIFIED;
    int64_t row_alignment = 0;
    std::vector<int32_t> ints = {};  // of an i32: what it holds
    float scale = 1;                 // of the random numbers of an input
    float shift = 0;                 // added to them
  };
  std::string name;
  Op op;  // kind and attributes
  std::vector<Operand> inputs = {};
  std::vector<Operand> outputs = {};
  std::vector<std::vector<int64_t>> parameters = {};
  bool read_elsewhere = false;  // input "x", whose gradient has a part already
};

// As GoogleTest shows it.
inline void PrintTo(const OneOpSpec& spec, std::ostream* out) {
  *out << spec.name;
}

class OneOp {
 public:
  OneOp(const OneOpSpec& spec, ElementType dtype);

  // Inputs and parameters in, outputs and loss out.
  void Forward();
  // After Forward: gradients of inputs and parameters.
  void Backward();
  // What the gradients are of: all outputs, each element weighed, and what the
  // op adds to the loss.
  double Loss();

  struct Operand {
    std::string name;
    int tensor = -1;
    std::vector<float> value;
    std::vector<float> gradient;  // of outputs: given
    bool differentiable = false;
    std::vector<int32_t> ints;
  };
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<float> parameters;  // a flat buffer, gaps included
  std::vector<float> parameter_gradients;
  std::vector<int32_t> tokens;  // of the input that is i32 and says nothing

 private:
  // Where a tensor lies in a buffer of all of them.
  int64_t Offset(int tensor) const { return tensor * kTensorBytesMax; }
  void Build(const OneOpSpec& spec, ElementType dtype);
  void Place();
  LayerCall Call();
  void WriteInts(const Operand& input);
  void Write(int tensor, void* to, const std::vector<float>& values);
  std::vector<float> Read(int tensor, const void* from) const;
  char* ValueOf(int tensor) const;

  static constexpr int64_t kTensorBytesMax = 1 << 14;

  const std::unique_ptr<Device> device_;
  const ElementType dtype_;
  UnitTable table_;
  Unit unit_;
  UnitPlaces places_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<float> added_;  // the part of x's gradient that others made
  std::unique_ptr<DeviceMemory> values_, gradients_, added_memory_, rounded_,
      flat_gradients_;
  Sums sums_;
  std::vector<double> scalars_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_LAYERS_ONE_OP_H_
