// SPDX-License-Identifier: BSD-3-Clause
// Point functions that are sums, found in their text.
#include "problems/mesh/linear.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trifold::mesh {
namespace {

// "field dx dy dz coefficient", one after the other; "-" where it is no sum.
std::string terms(const char* text) {
    static constexpr double parameters[] = {0.5, 3};
    const auto found = linear_terms({"f", text}, parameters);
    if (!found) return "-";
    std::string all;
    for (const Term& t : *found) {
        char one[80];
        std::snprintf(one, sizeof one, "%s%d %d %d %d %g", all.empty() ? "" : ", ", t.field, t.dx, t.dy, t.dz, t.coefficient);
        all += one;
    }
    return all;
}

TEST(LinearTerms, SumsAreFound) {
    EXPECT_EQ(terms("{ out(0) = at(0, 0, 0, 0); }"), "0 0 0 0 1");
    EXPECT_EQ(terms("{ real u = at(0, 0, 0, 0); out(0) = p(0) * ((at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0))); }"), "0 -1 0 0 0.5, 0 0 0 0 -1, 0 1 0 0 0.5");
    EXPECT_EQ(terms("{ real a = at(1, 0, 2, 0), b = 2 * a; out(0) = -(b / p(1)) * 1.5 + a * (p(0) + 1); }"), "1 0 2 0 0.5");
    EXPECT_EQ(terms("{out(0)=+at(2,+1,0,-1)*3/4-real(1)/2*at(2,1,0,-1);}"), "2 1 0 -1 0.25");
    EXPECT_EQ(terms("{ real u = at(0, 0, 0, 0); out(0) = mad(p(0), at(0, 1, 0, 0) - u, mad(u, 3, 2 * at(0, -1, 0, 0))); }"), "0 1 0 0 0.5, 0 0 0 0 2.5, 0 -1 0 0 2");
    EXPECT_EQ(terms("{ real k = 1 / p(1); out(0) = 6 * k * at(0, 0, 0, 0) + 1 - p(1) + 2e0; }"), "0 0 0 0 2");
}

TEST(LinearTerms, AnythingElseIsNone) {
    for (const char* text : {"{ out(0) = at(0, 0, 0, 0) * at(0, 0, 0, 0); }", "{ out(0) = 1 / at(0, 0, 0, 0); }", "{ out(0) = at(0, 0, 0, 0) + 1; }", "{ out(0) = 1 / 2 * at(0, 0, 0, 0); }",
                             "{ out(0) = at(0, 0, 0, 0) * x; }", "{ out(0) = fabs(at(0, 0, 0, 0)); }", "{ out(0) = at(0, 0, 0, 0); out(1) = 0; }", "{ out(1) = at(0, 0, 0, 0); }",
                             "{ real u = at(0, 0, 0, 0); u = 2 * u; out(0) = u; }", "{ out(0) += at(0, 0, 0, 0); }", "{ if (x > 3) out(0) = at(0, 0, 0, 0); }", "{ out(0) = x > 3 ? at(0, 0, 0, 0) : 0; }",
                             "{ out(0) = 0x10 * at(0, 0, 0, 0); }", "{ out(0) = 2.f * at(0, 0, 0, 0); }", "{ out(0) = p(2) * at(0, 0, 0, 0); }", "{ out(0) = at(0, 0, 0, 0) / (p(0) - p(0)); }",
                             "{ out(0) = (real)at(0, 0, 0, 0); }", "{ out(0) = mad(at(0, 0, 0, 0), at(0, 0, 0, 0), 0); }", "{ out(0) = mad(2, at(0, 0, 0, 0), 1); }", "{ out(0) = mad(2, at(0, 0, 0, 0)); }", "{ out(0) = at(0, 0, 0, 0) }", "{ out(0) = ", "", "{"})
        EXPECT_EQ(terms(text), "-") << text;
    EXPECT_EQ(terms(("{ out(0) = " + std::string(5000, '(') + "at(0, 0, 0, 0)" + std::string(5000, ')') + "; }").c_str()), "-");
    EXPECT_EQ(terms(("{ out(0) = " + std::string(5000, '-') + "at(0, 0, 0, 0); }").c_str()), "-");
}

}  // namespace
}  // namespace trifold::mesh
