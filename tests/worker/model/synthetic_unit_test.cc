#include "worker/model/synthetic_unit.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

// Of two sequences of three tokens, behind a unit of 32 bytes.
SyntheticUnitOptions Options() {
  SyntheticUnitOptions options;
  options.unit.set_kind(Unit::SYNTHETIC);
  options.unit.set_activation_bytes(64);
  options.unit.mutable_forward()->set_wait_seconds(0.02);
  options.unit.mutable_backward_input()->set_wait_seconds(0.03);
  options.unit.mutable_backward_weight()->set_wait_seconds(0.01);
  options.input_bytes = 32;
  options.tokens = 6;
  return options;
}

double SecondsOf(const std::function<void()>& pass) {
  const absl::Time begin = absl::Now();
  pass();
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

TEST(SyntheticUnit, TakesItsTimeAndWritesWhatItWouldCompute) {
  const auto unit = NewSyntheticUnit(Options());
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<char> output(80, 1);
  std::vector<char> input_gradient(80, 1);
  std::vector<float> parameter_gradients(16, 1);
  const UnitBuffers buffers = {
      .output = output.data(),
      .input_gradient = input_gradient.data(),
      .parameter_gradients = parameter_gradients.data()};
  // No less; how much more is the machine's affair.
  EXPECT_GE(SecondsOf([&] { unit->Forward(*device, {}, buffers); }), 0.02);
  EXPECT_GE(SecondsOf([&] { unit->BackwardInput(*device, {}, buffers); }),
            0.03);
  EXPECT_GE(SecondsOf([&] { unit->BackwardWeight(*device, {}, buffers); }),
            0.01);
  EXPECT_EQ(std::count(output.begin(), output.end(), 0), 64);
  EXPECT_EQ(std::count(input_gradient.begin(), input_gradient.end(), 0), 32);
  EXPECT_EQ(
      std::count(parameter_gradients.begin(), parameter_gradients.end(), 1.0f),
      16);
}

TEST(SyntheticUnit, CountsItsTokensInItsSumsAndNowhereElse) {
  SyntheticUnitOptions options = Options();
  options.unit.set_activation_bytes(0);
  options.counts = {{.first = 1, .elements = 1}, {.first = 3, .elements = 2}};
  const auto unit = NewSyntheticUnit(options);
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<double> scalars = {0, 6, 0, 1, 2};
  unit->Forward(*device, {}, {.scalars = scalars.data()});
  EXPECT_EQ(scalars, std::vector<double>({0, 12, 0, 7, 8}));
}

TEST(SyntheticUnit, IsNoneOfAnotherKind) {
  SyntheticUnitOptions options = Options();
  options.unit.set_kind(Unit::BLOCK);
  EXPECT_DEATH(NewSyntheticUnit(options), "SYNTHETIC");
}

}  // namespace
}  // namespace troupe
