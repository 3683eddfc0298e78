#include "storage/checkpoint/stored_dtype.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(StoredDType, EveryTypeComesBackByItsName) {
  for (int i = 0; i <= static_cast<int>(StoredDType::kBool); ++i) {
    const StoredDType dtype = static_cast<StoredDType>(i);
    const auto parsed = ParseStoredDType(StoredDTypeName(dtype));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, dtype);
  }
  EXPECT_EQ(StoredDTypeName(StoredDType::kBF16), "BF16");
  EXPECT_EQ(StoredDTypeBytes(StoredDType::kF32), 4);
  EXPECT_EQ(StoredDTypeBytes(StoredDType::kBF16), 2);
  EXPECT_EQ(StoredDTypeBytes(StoredDType::kI64), 8);
  EXPECT_EQ(StoredDTypeBytes(StoredDType::kU8), 1);
}

TEST(StoredDType, UnknownNamesAreRefused) {
  EXPECT_FALSE(ParseStoredDType("f32").ok());
  EXPECT_FALSE(ParseStoredDType("").ok());
}

}  // namespace
}  // namespace troupe
