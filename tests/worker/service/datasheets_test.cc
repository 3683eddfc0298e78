#include "worker/service/datasheets.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::map<ElementType, double> TeraflopsOf(const std::string& gpu) {
  std::map<ElementType, double> rates;
  for (const DatasheetRate& rate : DatasheetOf(gpu)) {
    rates[rate.dtype()] = rate.flops_per_second() / 1e12;
  }
  return rates;
}

using Rates = std::map<ElementType, double>;

// Names as drivers give them.
TEST(Datasheets, AreFoundByTheNameOfTheGpu) {
  const Rates h100 = {{BF16, 989}, {F16, 989}, {F32, 67}};
  EXPECT_EQ(TeraflopsOf("NVIDIA H100 80GB HBM3"), h100);
  EXPECT_EQ(TeraflopsOf("NVIDIA H200"), h100);
  EXPECT_EQ(TeraflopsOf("NVIDIA H100 PCIe").at(BF16), 756);
  EXPECT_EQ(TeraflopsOf("NVIDIA H100 NVL").at(BF16), 835);
  EXPECT_EQ(TeraflopsOf("NVIDIA A100-SXM4-80GB").at(BF16), 312);
  EXPECT_EQ(TeraflopsOf("NVIDIA A100 80GB PCIe").at(F32), 19.5);
  EXPECT_EQ(TeraflopsOf("NVIDIA L40S").at(F16), 362);
  EXPECT_EQ(TeraflopsOf("NVIDIA L40").at(F16), 181);
  EXPECT_EQ(TeraflopsOf("NVIDIA L4").at(F16), 121);
  EXPECT_EQ(TeraflopsOf("NVIDIA GeForce RTX 4090").at(F32), 82.6);
}

TEST(Datasheets, HaveNoBf16WhereTensorCoresHaveNone) {
  const Rates v100 = {{F16, 125}, {F32, 15.7}};
  EXPECT_EQ(TeraflopsOf("Tesla V100-SXM2-16GB"), v100);
}

// Other chips whose names only begin alike, and parts of a GPU.
TEST(Datasheets, OfOthersAreNotKnown) {
  for (const char* const name :
       {"", "NVIDIA GB200", "NVIDIA A10G", "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "AMD Instinct MI300X"}) {
    EXPECT_TRUE(DatasheetOf(name).empty()) << name;
  }
}

}  // namespace
}  // namespace troupe
