// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/trampolines.hpp"

extern "C" {
__attribute__((visibility("hidden"))) void* trifold_real_functions[trifold::tests::trampoline_count];
__attribute__((visibility("hidden"))) int trifold_result_instead(int slot) {
    const int result = trifold::tests::result_instead(slot);
    // What any function may do to registers is done here, so that a trampoline that does not keep one of them is found.
    asm volatile(
        "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n pxor %%xmm3, %%xmm3\n pxor %%xmm4, %%xmm4\n pxor %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n pxor %%xmm7, %%xmm7\n"
        "xorl %%ecx, %%ecx\n xorl %%edx, %%edx\n xorl %%esi, %%esi\n xorl %%edi, %%edi\n xorl %%r8d, %%r8d\n xorl %%r9d, %%r9d\n xorl %%r10d, %%r10d\n xorl %%r11d, %%r11d" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
    return result;
}
__attribute__((visibility("hidden"))) extern char trifold_trampolines[];
}

// Sixteen bytes each. %r11 is nobody's argument in the ABI of System V; %al is the number of vector registers where arguments vary.
static_assert(trifold::tests::trampoline_count == 2048);
asm(R"(
    .pushsection .text
    .p2align 4
    .globl trifold_trampolines
    .hidden trifold_trampolines
trifold_trampolines:
    .set trifold_slot, 0
    .rept 2048
    .p2align 4
    movl $trifold_slot, %r11d
    jmp trifold_ask
    .set trifold_slot, trifold_slot + 1
    .endr

    .p2align 4
trifold_ask:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $208, %rsp
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %r10, 48(%rsp)
    movq %r11, 56(%rsp)
    movq %rax, 64(%rsp)
    movups %xmm0, 80(%rsp)
    movups %xmm1, 96(%rsp)
    movups %xmm2, 112(%rsp)
    movups %xmm3, 128(%rsp)
    movups %xmm4, 144(%rsp)
    movups %xmm5, 160(%rsp)
    movups %xmm6, 176(%rsp)
    movups %xmm7, 192(%rsp)
    movl %r11d, %edi
    call trifold_result_instead
    testl %eax, %eax
    jne 1f
    movq (%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 56(%rsp), %r11
    movq 64(%rsp), %rax
    movups 80(%rsp), %xmm0
    movups 96(%rsp), %xmm1
    movups 112(%rsp), %xmm2
    movups 128(%rsp), %xmm3
    movups 144(%rsp), %xmm4
    movups 160(%rsp), %xmm5
    movups 176(%rsp), %xmm6
    movups 192(%rsp), %xmm7
    leaq trifold_real_functions(%rip), %r10
    movq (%r10,%r11,8), %r11
    movq 48(%rsp), %r10
    leave
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_restore_state
1:
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .popsection
)");

void* trifold::tests::trampoline(int slot, void* real) {
    trifold_real_functions[slot] = real;
    return trifold_trampolines + 16 * slot;
}
