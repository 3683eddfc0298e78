#include "proto/plan/bf16_gain.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

void AddProduct(Calibration& calibration, ElementType dtype, int64_t m,
                double rate, ProductForm form = PLAIN) {
  MatmulRate& product = *calibration.add_matmul();
  product.set_dtype(dtype);
  product.set_form(form);
  product.set_m(m);
  product.set_n(64);
  product.set_k(64);
  product.set_flops_per_second(rate);
}

TEST(Bf16Gain, IsOneWhereNothingWasMeasuredInBoth) {
  Calibration calibration;
  EXPECT_EQ(Bf16GainOf(calibration).products, 1);
  AddProduct(calibration, F32, 64, 1e9);
  AddProduct(calibration, BF16, 128, 4e9);
  EXPECT_EQ(Bf16GainOf(calibration).products, 1);
  EXPECT_EQ(Bf16GainOf(calibration).attention, 1);
  EXPECT_FALSE(Bf16GainOf(calibration).has_instructions());
  EXPECT_EQ(Bf16LossText(Bf16GainOf(calibration)), "");
}

TEST(Bf16Gain, IsTheMeanOverEqualSizesAndForms) {
  Calibration calibration;
  AddProduct(calibration, F32, 64, 1e9);
  AddProduct(calibration, BF16, 64, 2e9);
  AddProduct(calibration, F32, 64, 1e9, GRADIENT);
  AddProduct(calibration, BF16, 64, 8e9, GRADIENT);
  AddProduct(calibration, F16, 64, 1e6);  // is no matter
  EXPECT_NEAR(Bf16GainOf(calibration).products, 4, 1e-9);
  EXPECT_TRUE(Bf16GainOf(calibration).has_instructions());
  for (const ElementType dtype : {F32, BF16}) {
    AttentionRate& rate = *calibration.add_attention();
    rate.set_dtype(dtype);
    rate.set_length(64);
    rate.set_head_dim(64);
    rate.set_forward_flops_per_second(dtype == BF16 ? 4e9 : 1e9);
    rate.set_backward_flops_per_second(1e9);
  }
  EXPECT_NEAR(Bf16GainOf(calibration).attention, 2, 1e-9);
}

TEST(Bf16Gain, ALossIsSaid) {
  EXPECT_EQ(Bf16LossText({.products = 0.946, .attention = 1.02}),
            "products in bf16 at 0.95 of f32's rate, attention at 1.02");
}

}  // namespace
}  // namespace troupe
