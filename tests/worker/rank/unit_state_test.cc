#include "worker/rank/unit_state.h"

#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

Unit UnitOfTwo() {
  Unit unit;
  Parameter& weight = *unit.add_parameters();
  weight.set_name("weight");
  *weight.add_dims() = DimOf({{Dim::HIDDEN, 3}});
  *weight.add_dims() = DimOf({{Dim::HIDDEN, 2}});
  Parameter& bias = *unit.add_parameters();
  bias.set_name("bias");
  *bias.add_dims() = DimOf({{Dim::HIDDEN, 2}});
  bias.set_offset(16);
  unit.set_flat_elements(32);
  return unit;
}

TEST(UnitState, AdamWHasTwoMomentsBehindOneAnother) {
  OptimizerSpec adamw;
  adamw.set_name("adamw");
  std::vector<float> parameters(32);
  std::vector<float> moments(64);
  char* p = reinterpret_cast<char*>(parameters.data());
  char* m = reinterpret_cast<char*>(moments.data());
  const std::vector<StateTensor> tensors = UnitStateTensors(
      adamw, UnitOfTwo(), {.parameters = p, .optimizer_state = m});
  ASSERT_EQ(tensors.size(), 6u);
  EXPECT_EQ(tensors[0].name, "weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(tensors[0].elements, 6);
  EXPECT_EQ(tensors[0].data, p);
  EXPECT_EQ(tensors[1].data, p + 16 * 4);
  EXPECT_EQ(tensors[3].name, "optimizer.exp_avg.bias");
  EXPECT_EQ(tensors[3].data, m + 16 * 4);
  EXPECT_EQ(tensors[5].name, "optimizer.exp_avg_sq.bias");
  EXPECT_EQ(tensors[5].data, m + (32 + 16) * 4);
}

TEST(UnitState, SgdHasMomentumOrNothing) {
  OptimizerSpec sgd;
  sgd.set_name("sgd");
  std::vector<float> flat(32);
  char* data = reinterpret_cast<char*>(flat.data());
  EXPECT_EQ(UnitStateTensors(sgd, UnitOfTwo(), {.parameters = data}).size(),
            2u);
  EXPECT_EQ(UnitStateTensors(sgd, UnitOfTwo(),
                             {.parameters = data, .optimizer_state = data})[2]
                .name,
            "optimizer.momentum.weight");
}

}  // namespace
}  // namespace troupe
