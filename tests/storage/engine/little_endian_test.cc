#include "storage/engine/little_endian.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(LittleEndian, LeastSignificantByteFirst) {
  char bytes[8];
  StoreLittleEndian<uint64_t>(0x0102030405060788, bytes);
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]), 0x88);
  EXPECT_EQ(bytes[7], 1);
  EXPECT_EQ(LoadLittleEndian<uint64_t>(bytes), 0x0102030405060788u);
  EXPECT_EQ(LoadLittleEndian<uint32_t>(bytes), 0x05060788u);
  EXPECT_EQ(LoadLittleEndian<uint16_t>(bytes), 0x0788u);
  EXPECT_EQ(LoadLittleEndian<uint8_t>(bytes), 0x88u);
}

}  // namespace
}  // namespace troupe
