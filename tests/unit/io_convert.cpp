// SPDX-License-Identifier: BSD-3-Clause
#include "io/convert.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace trifold::io {
namespace {

// Every value is the place that it has in C order.
template <class T>
void brought_to_c_order(DType dtype, const std::vector<std::int64_t>& extents) {
    Array array(Shape{dtype, extents, true}, "a");
    const Shape due{dtype, extents, false};
    const std::vector<std::int64_t> from = array.shape().strides(), to = due.strides();
    for (std::int64_t place = 0; place < due.elements(); ++place) {
        std::int64_t rest = place, at = 0;
        for (std::size_t d = extents.size(); d-- > 0;) at += rest % extents[d] * from[d], rest /= extents[d];
        array.as<T>()[at] = static_cast<T>(place);
    }
    const Array found = in_c_order(std::move(array), "a");
    EXPECT_FALSE(found.shape().fortran);
    ASSERT_EQ(found.shape().extents, extents);
    for (std::int64_t place = 0; place < due.elements(); ++place) ASSERT_EQ(found.as<T>()[place], static_cast<T>(place)) << found.shape().text();
}

TEST(Convert, FortranToCOrder) {
    for (const std::vector<std::int64_t>& extents : std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {2, 3}, {65, 127}, {3, 0, 2}, {5, 4, 3}, {64, 3, 129}, {2, 3, 5, 7}, {2, 3, 2, 3, 2}, {300, 2, 200}}) {
        brought_to_c_order<float>(DType::f32, extents);
        brought_to_c_order<double>(DType::f64, extents);
    }
}

TEST(Convert, COrderStaysWhereItIs) {
    Array array(Shape{DType::f64, {2, 3}, false}, "a");
    const void* const data = array.data();
    EXPECT_EQ(in_c_order(std::move(array), "a").data(), data);
}

}  // namespace
}  // namespace trifold::io
