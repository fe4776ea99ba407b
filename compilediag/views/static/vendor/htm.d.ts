import htm from "htm";
export { htm };
