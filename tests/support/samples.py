"""Every language by one sample: a new one needs its TOML file and a row here.

A sample is a valid text whose function body stands between « and »; `noise` holds brackets only where they count
for nothing, and `placeholder` could stand there as long as the body is not written.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    file: str
    text: str
    noise: str
    placeholder: str

    @property
    def parts(self) -> tuple[str, str, str]:
        prefix, _, rest = self.text.partition("«")
        body, _, suffix = rest.partition("»")
        return prefix, body, suffix


SAMPLES = {
    "python": Sample(
        "a.py",
        "import os\n\n\ndef add(a, b):\n    «c = a + b\n    return str(c)»\n\n\ndef last():\n    pass\n",
        "# ( [\nx = '(' \"[\" '''{\n('''\n",
        'raise NotImplementedError(f"{a}")',
    ),
    "javascript": Sample(
        "a.mjs",
        "const a = 1;\n\nfunction add(a, b) {\n  «const c = a + b;\n  return String(c);»\n}\n\nadd(1, 2);\n",
        "// (\n/* [ */ x = '(' + \"[\" + `{\n(`; y = /[(]/g;\n",
        "throw new Error('not implemented');",
    ),
    "typescript": Sample(
        "a.ts",
        "type N = number;\n\nfunction add(a: N, b: N): string {\n  «const c: N = a + b;\n  return String(c);»\n}\n",
        "// (\n/* [ */ const x: string = '(' + `{\n(`;\n",
        'throw new Error("TODO: add");',
    ),
    "tsx": Sample(
        "a.tsx",
        "type P = { a: string };\n\nfunction V(p: P) {\n  «const c = String(p.a);\n  return <b>{String(c)}</b>;»\n}\n",
        "// (\nconst x = '(' + \"[\";\n",
        "throw new NotImplementedError();",
    ),
    "go": Sample(
        "a.go",
        'package a\n\nimport "fmt"\n\nfunc Add(a, b int) string {\n\t«c := a + b\n\treturn fmt.Sprint(c)»\n}\n',
        "// (\n/* [ */\nvar x = \"(\" + `{\n\\`\nvar y = '['\n",
        'panic("not yet implemented")',
    ),
    "rust": Sample(
        "a.rs",
        "use std::fmt;\n\nfn add<'a>(a: &'a i32, b: i32) -> String {\n    «let c = a + b;\n    c.to_string()»\n}\n",
        "// (\n/* [ */ let x: &'a str = \"(\"; let y = '['; let z = r#\"{\"(\"#; let w = '\\'';\n",
        "todo!()",
    ),
    "java": Sample(
        "A.java",
        "class A {\n    int add(int a, int b) {\n        «int c = a + b;\n        return abs(c);»\n    }\n}\n",
        '// (\n/* [ */ String x = "(" + \'[\' + """\n{ (""";\n',
        "throw new UnsupportedOperationException();",
    ),
    "c": Sample(
        "a.c",
        "#include <stdio.h>\n\nint add(int a, int b)\n{\n    «int c = a + b;\n    return abs(c);»\n}\n",
        "// (\n/* [ */ char *x = \"(\"; char y = '{';\n",
        'assert(0 && "not implemented");',
    ),
    "cpp": Sample(
        "a.cc",
        "#include <string>\n\nstd::string add(int a, int b) {\n    «auto c = a + b;\n    return to_text(c);»\n}\n",
        "// (\nint n = 1'000'000; auto x = R\"x({ \"( )\" )x\"; char y = '[';\n",
        'throw std::logic_error("implement me");',
    ),
}
